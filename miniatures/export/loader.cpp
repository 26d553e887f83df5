// Loads a compiled package, reads numbers, prints the model's answer. No Python anywhere.
#include <ATen/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int count, char** words) {
  torch::inductor::AOTIModelPackageLoader model(words[1]);
  std::vector<float> values;
  for (int i = 2; i < count; ++i) values.push_back(std::atof(words[i]));
  long rows = values.size() / 8;
  at::Tensor x = at::from_blob(values.data(), {rows, 8});
  at::Tensor y = model.run({x})[0];
  for (long i = 0; i < y.numel(); ++i) std::printf("%.9g ", y.data_ptr<float>()[i]);
  std::FILE* maps = std::fopen("/proc/self/maps", "r");  // which libraries are loaded?
  char line[1024];
  while (maps && std::fgets(line, sizeof line, maps)) std::fputs(line, stderr);
}
