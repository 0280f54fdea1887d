// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#version 450

// One fully connected layer for a batch of images: each invocation works out
// outputs of one image at a time, and goes on to the next one as many steps
// ahead as there are invocations. So any number of workgroups gives the same
// result, and the host starts as many as the device allows.
layout(local_size_x = 64) in;

layout(constant_id = 0) const bool kRelu = false;

layout(std430, set = 0, binding = 0) readonly buffer Weight { float weight[]; };
layout(std430, set = 0, binding = 1) readonly buffer Bias { float bias[]; };
layout(std430, set = 0, binding = 2) readonly buffer In { float inputs[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Out { float outputs[]; };

layout(push_constant) uniform Shape {
  uint input_count;   // Of one image.
  uint output_count;  // Of one image.
  uint total;         // Outputs of all images of the batch.
};

void main() {
  const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
    const uint row = (i % output_count) * input_count;
    const uint image = (i / output_count) * input_count;
    float sum = bias[i % output_count];
    for (uint k = 0; k < input_count; ++k) sum += weight[row + k] * inputs[image + k];
    outputs[i] = kRelu ? max(sum, 0.0) : sum;
  }
}
