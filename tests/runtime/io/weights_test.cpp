// Weights out of a checkpoint and into a network: what export_weights writes, load_weights reads.
#include "runtime/io/weights.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "runtime/io/checkpoint.hpp"
#include "runtime/io/export_weights.hpp"
#include "runtime/io/exported_network.hpp"
#include "support/message_of.hpp"
#include "support/training.hpp"

namespace stratplan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

using State = std::map<std::string, std::vector<float>>;

State state_of(test::Rank& rank) {
  State state;
  for (const NamedTensor& tensor : test::parameters(rank)) state[tensor.name] = tensor.values;
  for (const NamedTensor& tensor :
       gather_running_statistics(rank.network, rank.program, rank.executor, rank.communicator))
    state[tensor.name] = tensor.values;
  return state;
}

/// Trains two steps, writes a checkpoint, and returns the state.
State trained(const Network& network, const std::string& grid, const fs::path& folder) {
  State state;
  test::on_ranks(network, grid, {.seed = 3, .learning_rate = 0.1}, [&](test::Rank& rank) {
    test::train_steps(rank, 0, 2);
    Checkpoints(folder, 3, rank.network, rank.program, 3, rank.executor, rank.communicator).save(2);
    const State mine = state_of(rank);
    if (rank.communicator.rank() == 0) state = mine;
  });
  return state;
}

struct Loaded {
  LoadedWeights weights;
  State state;
};

Loaded loaded(const Network& network, const std::string& grid, const fs::path& file,
              MissingTensors missing = MissingTensors::Refused) {
  Loaded result;
  test::on_ranks(network, grid, {.seed = 9}, [&](test::Rank& rank) {
    const LoadedWeights weights =
        load_weights(file, rank.network, rank.program, rank.executor, missing);
    const State mine = state_of(rank);
    if (rank.communicator.rank() == 0) result = {weights, mine};
  });
  return result;
}

const NamedTensor& tensor_of(const std::vector<NamedTensor>& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  if (found == tensors.end()) throw std::runtime_error("no tensor " + name);
  return *found;
}

std::string contents_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class Weights : public testing::Test {
 protected:
  Network network_ = test::ExportedNetwork().network();
  test::TemporaryFolder folder_;
  fs::path file_ = folder_ / "model.safetensors";
};

TEST_F(Weights, AnExportHasTheModelsTensors) {
  const State state = trained(network_, "N2", folder_.path());
  const ExportedWeights all = export_weights(folder_.path());
  EXPECT_EQ(all.step, 2);
  EXPECT_EQ(all.network, "model");
  std::vector<std::string> names;
  for (const NamedTensor& tensor : all.tensors) names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("features.weight", "conv2.bias", "bn.scale", "bn.shift",
                                 "norm.mean", "norm.var", "W", "gamma", "std", "one"));
  EXPECT_THAT(all.notes,
              ElementsAre(HasSubstr("the imported model has no tensors for conv2.bias, bn.scale")));
  EXPECT_THAT(tensor_of(all.tensors, "features.weight").shape, ElementsAre(3, 3, 1, 1));
  EXPECT_EQ(tensor_of(all.tensors, "features.weight").values, state.at("features.weight"));
  EXPECT_EQ(tensor_of(all.tensors, "norm.var").values, state.at("norm.var"));
  EXPECT_THAT(tensor_of(all.tensors, "gamma").shape, ElementsAre(3, 1, 1));
  EXPECT_THAT(tensor_of(all.tensors, "gamma").values, ElementsAre(1, 2, 3));
  // W has F = 2, C = 3 and 4 positions p: element 12 f + 4 c + p here, 2 (3 p + c) + f there.
  const NamedTensor& matrix = tensor_of(all.tensors, "W");
  EXPECT_THAT(matrix.shape, ElementsAre(12, 2));
  for (std::size_t f = 0; f < 2; ++f)
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t p = 0; p < 4; ++p)
        EXPECT_EQ(matrix.values[2 * (3 * p + c) + f], state.at("W")[12 * f + 4 * c + p]);
}

TEST_F(Weights, ComeBackFromCheckpointAndExport) {
  const State state = trained(network_, "N1", folder_.path());
  write_safetensors(file_, export_weights(folder_.path()).tensors);
  for (const fs::path& file : {file_, fs::path(folder_ / "step-00000002.safetensors")})
    for (const char* grid : {"N1", "N2", "F2", "H2"}) {
      const Loaded all = loaded(network_, grid, file);
      EXPECT_EQ(all.state, state) << grid << ": " << file;
      EXPECT_THAT(notes_on(all.weights, "file"), IsEmpty()) << grid;
    }
}

TEST_F(Weights, OfACheckpointWithoutTheModelsNamesAreTheNetworks) {
  trained(network_, "N1", folder_.path());
  SafetensorsFile file = read_checkpoint(folder_ / "step-00000002.safetensors");
  std::erase_if(file.metadata, [](const auto& entry) { return entry.first.starts_with("model_"); });
  write_safetensors(folder_ / "step-00000002.safetensors", file.tensors, file.metadata);
  const ExportedWeights all = export_weights(folder_.path());
  EXPECT_THAT(all.notes, ElementsAre(HasSubstr("of an earlier version does not say")));
  EXPECT_THAT(tensor_of(all.tensors, "features.weight").shape, ElementsAre(3, 3, 1, 1));
  EXPECT_THAT(tensor_of(all.tensors, "W").shape, ElementsAre(2, 3, 2, 2));
  EXPECT_TRUE(std::ranges::none_of(all.tensors, [](const NamedTensor& tensor) {
    return tensor.name.starts_with("optimizer.");
  }));
}

TEST_F(Weights, MayBeMissingIfAllowed) {
  const State state = trained(network_, "N1", folder_.path());
  std::vector<NamedTensor> tensors = export_weights(folder_.path()).tensors;
  std::erase_if(tensors, [](const NamedTensor& tensor) {
    return tensor.name == "W" || tensor.name == "norm.var";
  });
  tensors.push_back({"head.weight", {1}, {0}});
  std::ranges::find(tensors, "gamma", &NamedTensor::name)->values[0] = 7;
  write_safetensors(file_, tensors);
  EXPECT_THAT(test::message_of<InputError>([&] { loaded(network_, "N1", file_); }),
              HasSubstr("model.safetensors: this file has no tensor W, norm.var; --allow-missing"));
  const Loaded all = loaded(network_, "N2", file_, MissingTensors::Kept);
  EXPECT_THAT(all.weights.missing, ElementsAre("W", "norm.var"));
  EXPECT_THAT(all.weights.unexpected, ElementsAre("head.weight"));
  EXPECT_THAT(all.weights.constants, ElementsAre("gamma"));
  EXPECT_THAT(notes_on(all.weights, "file"), testing::SizeIs(3));
  EXPECT_EQ(all.state.at("norm.mean"), state.at("norm.mean"));
  EXPECT_THAT(all.state.at("norm.var"), ElementsAre(1, 1, 1));
  EXPECT_EQ(all.state.at("features.weight"), state.at("features.weight"));
  EXPECT_NE(all.state.at("W"), state.at("W"));

  write_safetensors(file_, std::vector<NamedTensor>{{"head.weight", {1}, {0}}});
  EXPECT_THAT(
      test::message_of<InputError>([&] { loaded(network_, "N1", file_, MissingTensors::Kept); }),
      HasSubstr("no tensor of the network's 7, such as W"));
}

TEST_F(Weights, MustHaveTheShape) {
  trained(network_, "N1", folder_.path());
  const std::vector<NamedTensor> tensors = export_weights(folder_.path()).tensors;
  const struct {
    const char* name;
    std::vector<std::int64_t> shape;
    const char* message;
  } rows[] = {
      {"W", {12, 2}, ""},          // the model's
      {"W", {2, 3, 1, 2, 2}, ""},  // the network's
      {"W", {2, 12}, "at /W: expected the shape (12, 2), found (2, 12)"},
      {"W", {2, 2, 2, 3}, "expected the shape (12, 2), found (2, 2, 2, 3)"},
      {"W", {4}, "expected the shape (12, 2), found (4)"},
      {"features.weight", {3, 3}, ""},
      {"features.weight", {9}, "expected the shape (3, 3, 1, 1), found (9)"},
      {"norm.mean", {1, 3, 1}, ""},
  };
  for (const auto& [name, shape, message] : rows) {
    std::vector<NamedTensor> changed = tensors;
    NamedTensor& tensor = *std::ranges::find(changed, name, &NamedTensor::name);
    tensor.shape = shape;
    std::int64_t elements = 1;
    for (const std::int64_t extent : shape) elements *= extent;
    tensor.values.resize(static_cast<std::size_t>(elements));
    write_safetensors(file_, changed);
    for (const auto missing : {MissingTensors::Refused, MissingTensors::Kept}) {
      const std::string found =
          test::message_of<InputError>([&] { loaded(network_, "N1", file_, missing); });
      EXPECT_THAT(found, HasSubstr(*message ? message : "no exception")) << name;
    }
  }
}

/// Writes a file with a tensor of another type behind the others.
void add_integers(const fs::path& file, const std::string& name, const std::string& type) {
  const std::string bytes = contents_of(file);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const std::size_t size = bytes.size() - 8 - length;
  Json header = Json::parse(bytes.substr(8, length));
  header[name] = {{"dtype", type}, {"shape", Json::array()}, {"data_offsets", {size, size + 8}}};
  const std::string text = header.dump();
  length = text.size();
  std::string whole(8, '\0');
  std::memcpy(whole.data(), &length, 8);
  std::ofstream(file, std::ios::binary)
      << whole + text + bytes.substr(bytes.size() - size) + std::string(8, 'a');
}

TEST_F(Weights, OfOtherTypesAreSkipped) {
  trained(network_, "N1", folder_.path());
  write_safetensors(file_, export_weights(folder_.path()).tensors);
  add_integers(file_, "norm.num_batches_tracked", "I64");
  add_integers(file_, "positions", "I64");
  EXPECT_THAT(loaded(network_, "N1", file_).weights.unexpected, ElementsAre("positions"));

  std::vector<NamedTensor> tensors = export_weights(folder_.path()).tensors;
  std::erase_if(tensors, [](const NamedTensor& tensor) { return tensor.name == "norm.mean"; });
  write_safetensors(file_, tensors);
  add_integers(file_, "norm.mean", "F16");
  EXPECT_THAT(test::message_of<InputError>([&] { loaded(network_, "N1", file_); }),
              HasSubstr("at /norm.mean/dtype: expected F32, found F16"));
}

/// A model's file that is cut off anywhere is refused. A header with one other bit is refused, or
/// has another name, which is told, or other metadata.
TEST_F(Weights, OfADamagedFile) {
  trained(network_, "N1", folder_.path());
  write_safetensors(file_, export_weights(folder_.path()).tensors, {{"format", "pt"}});
  const std::string bytes = contents_of(file_);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  test::on_ranks(network_, "N1", {.seed = 9}, [&](test::Rank& rank) {
    const auto load = [&](const std::string& text) {
      std::ofstream(file_, std::ios::binary) << text;
      return load_weights(file_, rank.network, rank.program, rank.executor, MissingTensors::Kept);
    };
    for (std::size_t size = 0; size < bytes.size(); size += size < 16 ? 1 : 7)
      EXPECT_THROW(load(bytes.substr(0, size)), InputError) << size;
    for (std::size_t at = 0; at < 8 + length; ++at) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 7);
      try {
        const LoadedWeights weights = load(damaged);
        EXPECT_LE(weights.missing.size(), weights.unexpected.size()) << at;
      } catch (const InputError&) {  // the other answer
      }
    }
  });
}

/// Bytes of a checkpoint's header, changed: the export is refused, or is the same.
TEST_F(Weights, DamageIsFound) {
  trained(network_, "N1", folder_.path());
  const fs::path checkpoint = folder_ / "step-00000002.safetensors";
  const ExportedWeights whole = export_weights(checkpoint);
  const std::string bytes = contents_of(checkpoint);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  int refused = 0;
  const test::TemporaryFolder other;
  for (std::size_t at = 0; at < 8 + length; at += at < 8 ? 1 : 3) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    const std::string file = other.write("step-00000002.safetensors", damaged);
    try {
      const ExportedWeights found = export_weights(file);
      ASSERT_EQ(found.tensors.size(), whole.tensors.size()) << at;
      for (std::size_t i = 0; i < whole.tensors.size(); ++i) {
        ASSERT_EQ(found.tensors[i].name, whole.tensors[i].name) << at;
        ASSERT_EQ(found.tensors[i].shape, whole.tensors[i].shape) << at;
        ASSERT_EQ(found.tensors[i].values, whole.tensors[i].values) << at;
      }
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int>(length) / 6);
}

/// Metadata that is wrong, but has the right checksum.
TEST_F(Weights, MetadataMustFitTheTensors) {
  trained(network_, "N1", folder_.path());
  const fs::path checkpoint = folder_ / "step-00000002.safetensors";
  const SafetensorsFile whole = read_checkpoint(checkpoint);
  const struct {
    const char *rows, *message;
  } rows[] = {
      {R"([{"name": "V", "shape": [12, 2]}])", "this checkpoint has no tensor V"},
      {R"([{"name": "W", "shape": [12]}])", "the shape (12) in the model, but 24 values"},
      {R"([{"name": "norm.mean", "shape": [3], "transposed": true}])", "is no matrix"},
      {R"([{"name": "W", "shape": [24]}, {"name": "V", "tensor": "W", "shape": [24]}])",
       "this checkpoint has no tensor W"},
      {"[", "expected a list"},
  };
  for (const auto& [text, message] : rows) {
    Metadata metadata = whole.metadata;
    metadata["model_tensors"] = text;
    metadata["model_tensors_checksum"] = fingerprint_of(text);
    write_safetensors(checkpoint, whole.tensors, metadata);
    EXPECT_THAT(test::message_of<InputError>([&] { export_weights(checkpoint); }),
                testing::AllOf(HasSubstr("at /__metadata__/model_tensors: "), HasSubstr(message)));
  }
}

TEST_F(Weights, OfNoCheckpoint) {
  const auto message = [&] { return test::message_of<InputError>([&] { export_weights(file_); }); };
  EXPECT_THAT(message(), HasSubstr("can not be opened"));
  write_safetensors(file_, std::vector<NamedTensor>{{"a", {1}, {0}}}, {{"format", "pt"}});
  EXPECT_THAT(message(), HasSubstr("at /__metadata__/format: expected \"stratplan checkpoint 1\""));
  add_integers(file_, "norm.num_batches_tracked", "I64");
  EXPECT_THAT(message(), HasSubstr("at /__metadata__/format: expected \"stratplan checkpoint 1\""));
  file_ = folder_.path();
  EXPECT_THAT(message(), HasSubstr("expected a checkpoint, or a folder of checkpoints"));
}

}  // namespace
}  // namespace stratplan
