// stratplan data: synthetic data sets to train on, and the rate at which a data set is read.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <bit>
#include <filesystem>
#include <numeric>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/options.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "profile/read_rate.hpp"
#include "report/table.hpp"
#include "runtime/io/array_file.hpp"
#include "synthesis/cosmo.hpp"
#include "synthesis/mesh.hpp"

namespace stratplan {
namespace {

struct DataOptions {
  std::string output;
  std::int64_t samples = 64;
  std::int64_t size = 0;
  std::int64_t block = 32;  ///< mesh only: side in cells of the square of one output position
  bool labels = false;      ///< mesh only: y holds one class per cell
  std::uint64_t seed = 1;
  bool json = false;
};

std::unique_ptr<DataSetWriter> create(const DataOptions& options, const DataSetShape& shape) {
  const std::string extension = std::filesystem::path(options.output).extension().string();
  return extension == ".h5" || extension == ".hdf5" ? create_hdf5(options.output, shape)
                                                    : create_npy(options.output, shape);
}

void print(const DataOptions& options, const DataSetShape& shape, const std::string& remark) {
  if (options.json)
    fmt::print(
        "{}\n",
        Json{{"path", options.output}, {"samples", shape.samples}, {"x", shape.x}, {"y", shape.y}}
            .dump());
  else
    fmt::print("{}: {}, x ({}), y ({}){}\n", options.output, counted(shape.samples, "sample"),
               fmt::join(shape.x, ", "), fmt::join(shape.y, ", "), remark);
}

void make_mesh(const DataOptions& options) {
  if (!options.labels && options.size % options.block != 0)
    throw UsageError(fmt::format("--size: expected a multiple of --block {}, found {}",
                                 options.block, options.size));
  const std::int64_t blocks = options.size / options.block;
  DataSetShape shape{options.samples,
                     {mesh_channels, options.size, options.size},
                     {options.block * options.block, blocks, blocks},
                     DataType::F32};
  if (options.labels) {
    shape.y = {options.size, options.size};
    shape.y_type = DataType::I32;
  }
  const auto writer = create(options, shape);
  std::int64_t tangled = 0;
  Console progress;
  for (std::int64_t i = 0; i < options.samples; ++i) {
    const MeshSample sample = mesh_sample({options.size, options.seed}, i);
    tangled += std::accumulate(sample.tangled.begin(), sample.tangled.end(), std::int64_t{0});
    if (options.labels)
      writer->add(sample.channels.data(), sample.tangled.data());
    else
      writer->add(sample.channels.data(),
                  mesh_targets(sample.tangled, options.size, options.block).data());
    progress.update(fmt::format("sample {} of {}", i + 1, options.samples));
  }
  writer->finish();
  const double cells = static_cast<double>(options.samples) * static_cast<double>(options.size) *
                       static_cast<double>(options.size);
  print(options, shape,
        fmt::format("; {:.1f} % of the cells are tangled",
                    100 * static_cast<double>(tangled) / cells));
}

void make_cosmo(const DataOptions& options) {
  if (!std::has_single_bit(static_cast<std::uint64_t>(options.size)))
    throw UsageError(fmt::format("--size: expected a power of two, found {}", options.size));
  const DataSetShape shape{options.samples,
                           {cosmo_channels, options.size, options.size, options.size},
                           {4},
                           DataType::F32};
  const auto writer = create(options, shape);
  Console progress;
  for (std::int64_t i = 0; i < options.samples; ++i) {
    const CosmoSample sample = cosmo_sample({options.size, options.seed}, i);
    writer->add(sample.field.data(), sample.cosmology.targets().data());
    progress.update(fmt::format("sample {} of {}", i + 1, options.samples));
  }
  writer->finish();
  print(options, shape, "");
}

CLI::App* add_kind(CLI::App& data, const char* name, const char* description, DataOptions& options,
                   std::int64_t size) {
  CLI::App* command = data.add_subcommand(name, description);
  options.size = size;
  command
      ->add_option("-o,--output", options.output,
                   "FILE.h5 or FILE.hdf5 is written as an HDF5 file; any other name is a folder "
                   "for x.npy and y.npy")
      ->required();
  command->add_option("--samples", options.samples, "number of samples")
      ->check(positive())
      ->capture_default_str();
  command->add_option("--size", options.size, "number of cells along each side")
      ->check(positive())
      ->capture_default_str();
  command
      ->add_option("--seed", options.seed,
                   "seed of random numbers; the same seed makes the same data set")
      ->capture_default_str();
  add_json(*command, options.json);
  return command;
}

struct ReadRateOptions {
  std::string path;
  std::string most = "4GiB";
  bool json = false;
};

Json to_json(const ReadRate& rate) {
  return {{"files", rate.files},
          {"bytes", rate.bytes.value},
          {"bytes_per_s", rate.bytes_per_s()},
          {"file_seconds", rate.per_file().value}};
}

void measure_rate(const ReadRateOptions& options) {
  const ReadRates rates = measure_read_rates(options.path, parse_bytes(options.most));
  if (options.json) {
    fmt::print("{}\n", Json{{"path", options.path},
                            {"storage", to_json(rates.storage)},
                            {"memory", to_json(rates.memory)}}
                           .dump());
    return;
  }
  using enum Table::Align;
  Table table{{{"read from", Left}, {"files"}, {"bytes"}, {"MB/s"}, {"ms to open a file"}}, {}};
  const auto add = [&](const char* name, const ReadRate& rate) {
    table.rows.push_back({name, fmt::format("{}", rate.files), readable(rate.bytes),
                          four_digits(rate.bytes_per_s() / 1e6), milliseconds(rate.per_file())});
  };
  add("storage", rates.storage);
  add("page cache", rates.memory);
  fmt::print("{}", to_text(table));
}

constexpr const char* rate_footer =
    R"(The kernel is asked to drop the files from its page cache before the first pass. It keeps
files that are mapped. The rate is that of one reader: bytes_per_s of a level of storage in
machine.json.
Examples:
  stratplan data rate train.h5
  stratplan plan resnet50 -n 8 --input 850MB/s)";

constexpr const char* mesh_footer =
    R"(x: 18 channels that describe each cell, as listed in src/synthesis/mesh.hpp.
y: 1 where a cell is tangled, else 0, arranged as the mesh networks predict it: block * block
channels at each of (size / block)^2 positions. With --labels, y is one class per cell.
Examples:
  stratplan data mesh -o mesh.h5 --samples 256 --size 128        for mesh128
  stratplan run plan.json --data mesh.h5 --steps 100)";

constexpr const char* cosmo_footer =
    R"(x: a density field at four epochs. y: four parameters of its spectrum, of mean 0 and variance
1 (src/synthesis/cosmo.hpp has the theory).
Examples:
  stratplan data cosmo -o cosmo.h5 --samples 64 --size 128       for cosmoflow128
  stratplan run plan.json --data cosmo.h5 --steps 100)";

}  // namespace

void add_data(CLI::App& program, const CommandLine&) {
  CLI::App* data = program.add_subcommand(
      "data", "Make a data set to train on (mesh, cosmo), or measure how fast one is read (rate)");
  data->require_subcommand(1);
  auto mesh_options = std::make_shared<DataOptions>(),
       cosmo_options = std::make_shared<DataOptions>();
  CLI::App* mesh = add_kind(
      *data, "mesh", "2-D meshes deformed by random smooth maps; the target marks tangled cells",
      *mesh_options, 128);
  mesh->add_option("--block", mesh_options->block,
                   "side, in cells, of the square that one output position of the network covers")
      ->check(positive())
      ->capture_default_str();
  mesh->add_flag("--labels", mesh_options->labels,
                 "write one class per cell into y, for a cross-entropy over positions");
  mesh->footer(mesh_footer);
  mesh->callback([mesh_options] { make_mesh(*mesh_options); });
  CLI::App* cosmo =
      add_kind(*data, "cosmo",
               "3-D Gaussian random density fields; the targets are parameters of their spectrum",
               *cosmo_options, 64);
  cosmo->footer(cosmo_footer);
  cosmo->callback([cosmo_options] { make_cosmo(*cosmo_options); });
  auto rate_options = std::make_shared<ReadRateOptions>();
  CLI::App* rate = data->add_subcommand(
      "rate", "Measure the rate at which one reader gets a data set from storage");
  rate->add_option("PATH", rate_options->path, "file or folder to read")->required();
  rate->add_option("--most", rate_options->most, "read no more than this size")
      ->capture_default_str();
  add_json(*rate, rate_options->json);
  rate->footer(rate_footer);
  rate->callback([rate_options] { measure_rate(*rate_options); });
}

}  // namespace stratplan
