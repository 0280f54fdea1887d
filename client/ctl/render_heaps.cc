// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/ctl/cells.h"
#include "client/ctl/pool_rows.h"
#include "client/ctl/render.h"
#include "client/ctl/table.h"

namespace heapbroker {
namespace {

using Align = Table::Align;
using Show = Table::Show;

std::string UseText(const v1::DeviceStats& device) {
  Table table({{"heap", Align::kLeft},
               {"where", Align::kLeft},
               {"size"},
               {"budget"},
               {"in use"},
               {"of budget"},
               {"free now"},
               {"waiting", Align::kRight, Show::kWhereUsed}});
  for (int i = 0; i < device.heaps_size(); ++i) {
    const v1::HeapStats& heap = device.heaps(i);
    table.AddRow({absl::StrCat(i), heap.device_local() ? "device" : "host", Size(heap.size()),
                  Size(heap.budget()), Size(heap.in_use()),
                  FormatRate(heap.in_use(), heap.budget()), Size(heap.available()),
                  Number(heap.waiting_requests())});
  }
  return table.Render(kIndent);
}

// What others say of the same heaps, and how full they were.
std::string BesidesText(const v1::DeviceStats& device) {
  Table table({{"heap", Align::kLeft},
               {"peak"},
               {"driver budget", Align::kRight, Show::kWhereUsed},
               {"driver use", Align::kRight, Show::kWhereUsed},
               {"others", Align::kRight, Show::kWhereUsed},
               {"client idle", Align::kRight, Show::kWhereUsed},
               {"refused at", Align::kRight, Show::kWhereUsed}});
  for (int i = 0; i < device.heaps_size(); ++i) {
    const v1::HeapStats& heap = device.heaps(i);
    table.AddRow({absl::StrCat(i), Size(heap.peak_in_use()),
                  heap.has_driver_budget() ? Size(heap.driver_budget()) : "-",
                  heap.has_driver_usage() ? Size(heap.driver_usage()) : "-",
                  heap.has_others_in_use() ? Size(heap.others_in_use()) : "-",
                  Size(heap.idle_in_clients()),
                  heap.has_smallest_driver_refusal() ? Size(heap.smallest_driver_refusal()) : "-"});
  }
  return table.Render(kIndent);
}

std::string ExportsText(const v1::MemoryType& type) {
  std::vector<std::string> names;
  for (const int handle : type.handle_types()) {
    names.push_back(HandleTypeName(static_cast<v1::HandleType>(handle)));
  }
  return names.empty() ? "-" : absl::StrJoin(names, ", ");
}

std::string TypesText(const v1::Device& device) {
  Table table({{"type", Align::kLeft},
               {"heap", Align::kLeft},
               {"exported as", Align::kLeft},
               {"properties", Align::kLeft}});
  for (int i = 0; i < device.memory_types_size(); ++i) {
    const v1::MemoryType& type = device.memory_types(i);
    table.AddRow({absl::StrCat(i), absl::StrCat(type.heap_index()), ExportsText(type),
                  MemoryPropertyNames(type.property_flags())});
  }
  return table.Render(kIndent);
}

}  // namespace

std::string RenderHeaps(const v1::GetStatsResponse& stats) {
  std::string text;
  for (const v1::DeviceStats& device : stats.devices()) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", DeviceHeadline(device.device()), kIndent,
                    AllocationsText(device), "\n\n", UseText(device), "\n", BesidesText(device));
    if (device.device().memory_types_size() > 0) {
      absl::StrAppend(&text, "\n", TypesText(device.device()));
    }
  }
  return text;
}

}  // namespace heapbroker
