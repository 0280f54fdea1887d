// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/messages/parse.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace heapbroker {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

// As protobuf's own limit: what is nested deeper does not parse.
constexpr int kMaxDepth = 100;

absl::Status Malformed(const Descriptor& root) {
  return absl::InvalidArgumentError(
      absl::StrCat("the request is not a valid ", root.full_name(), " message"));
}

// Walks the wire format along a message's descriptor and looks at the text.
class TextChecker {
 public:
  explicit TextChecker(const Descriptor& root) : root_(root) {}

  // `prefix` names the field that `bytes` are the value of: "" or "hello.".
  absl::Status Check(absl::string_view bytes, const Descriptor& type, const std::string& prefix,
                     int depth) const {
    if (depth > kMaxDepth) return Malformed(root_);
    google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                 static_cast<int>(bytes.size()));
    while (const uint32_t tag = input.ReadTag()) {
      const FieldDescriptor* field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      if (!HoldsText(field, tag)) {
        if (!WireFormatLite::SkipField(&input, tag)) return Malformed(root_);
        continue;
      }
      uint32_t length = 0;
      if (!input.ReadVarint32(&length)) return Malformed(root_);
      const size_t value_start = input.CurrentPosition();
      if (length > bytes.size() - value_start || !input.Skip(static_cast<int>(length))) {
        return Malformed(root_);
      }
      HB_RETURN_IF_ERROR(CheckField(*field, bytes.substr(value_start, length), prefix, depth));
    }
    return input.ConsumedEntireMessage() ? absl::OkStatus() : Malformed(root_);
  }

 private:
  // Whether the value behind `tag` is a string, or a message that may hold one.
  // A known number with another wire type is an unknown field to protobuf.
  static bool HoldsText(const FieldDescriptor* field, uint32_t tag) {
    return field != nullptr &&
           WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED &&
           (field->type() == FieldDescriptor::TYPE_STRING ||
            field->type() == FieldDescriptor::TYPE_MESSAGE);
  }

  absl::Status CheckField(const FieldDescriptor& field, absl::string_view value,
                          const std::string& prefix, int depth) const {
    if (field.type() == FieldDescriptor::TYPE_MESSAGE) {
      return Check(value, *field.message_type(), absl::StrCat(prefix, field.name(), "."),
                   depth + 1);
    }
    const std::optional<size_t> invalid = FindInvalidUtf8(value);
    if (!invalid.has_value()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(prefix, field.name(), ": is not valid UTF-8 at byte ", *invalid));
  }

  const Descriptor& root_;
};

}  // namespace

absl::Status ParseMessage(absl::string_view bytes, google::protobuf::Message& out) {
  const Descriptor& type = *out.GetDescriptor();
  if (bytes.size() > std::numeric_limits<int>::max()) return Malformed(type);
  HB_RETURN_IF_ERROR(TextChecker(type).Check(bytes, type, "", 0));
  if (!out.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return Malformed(type);
  return absl::OkStatus();
}

}  // namespace heapbroker
