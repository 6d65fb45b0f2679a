#pragma once
// Sources of samples, labels and targets. A rank loads only the region that it needs.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/partition/program/program.hpp"

namespace stratplan {

class DataSource {
 public:
  virtual ~DataSource() = default;
  /// Returns the dense contents of `load.region` for a training step, channels last, in host
  /// memory. Samples and targets are F32. Labels are I32, one per sample and position, without
  /// channels. The result is valid until the next call.
  virtual std::span<const std::byte> load(const LoadOp& load, std::int64_t step) = 0;
  /// Whether the contents are the same in every step.
  virtual bool fixed() const { return false; }
  /// The number of steps of an epoch, in which each sample is used at most once.
  virtual std::int64_t steps_per_epoch() const { return 1; }
};

/// One fixed random batch, the same in every step, so that training visibly lowers the loss.
/// Samples are normal, targets uniform in [0, 1), labels uniform over the classes. Each value
/// depends only on seed, input layer or loss, and global element index, not on the decomposition.
/// Regions are generated at their first load.
class SyntheticData final : public DataSource {
 public:
  explicit SyntheticData(std::uint64_t seed) : seed_(seed) {}
  std::span<const std::byte> load(const LoadOp& load, std::int64_t step) override;
  bool fixed() const override { return true; }

 private:
  struct Part {
    LoadOp load;
    std::vector<std::byte> contents;
  };
  std::uint64_t seed_;
  std::vector<Part> parts_;
};

}  // namespace stratplan
