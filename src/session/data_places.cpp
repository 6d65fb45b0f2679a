#include "session/data_places.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "model/base/error.hpp"
#include "model/base/suggestion.hpp"

namespace stratplan {
namespace {

std::vector<std::string> names_of(const Network& network, const std::vector<LayerIndex>& layers) {
  std::vector<std::string> names;
  for (const LayerIndex layer : layers) names.push_back(network.layer(layer).name);
  return names;
}

std::vector<ArrayPlace> places(const std::vector<std::string>& layers,
                               const char* of_the_only_one) {
  if (layers.size() == 1) return {{of_the_only_one}};
  std::vector<ArrayPlace> places;
  for (const std::string& name : layers) places.push_back({name});
  return places;
}

}  // namespace

void set_places(DataSetRequest& request, const Network& network,
                const std::vector<std::string>& given) {
  const std::vector<std::string> inputs = names_of(network, network.inputs()),
                                 losses = names_of(network, network.losses());
  std::vector<std::string> all = inputs;
  all.insert(all.end(), losses.begin(), losses.end());
  request.samples = places(inputs, "x");
  request.wanted = places(losses, "y");
  const auto place = [&](std::size_t of_all) -> ArrayPlace& {
    return of_all < inputs.size() ? request.samples[of_all]
                                  : request.wanted[of_all - inputs.size()];
  };
  for (const std::string& text : given) {
    const std::string name = text.substr(0, text.find('='));
    const auto named = static_cast<std::size_t>(std::ranges::find(all, name) - all.begin());
    if (name != text && named < all.size()) {
      if (!place(named).file.empty())
        throw UsageError(fmt::format("--data names two files for {}", name));
      place(named).file = text.substr(name.size() + 1);
      if (place(named).file.empty())
        throw UsageError(fmt::format("--data {} needs a file behind the =", text));
      continue;
    }
    if (name != text && !std::filesystem::exists(text))
      throw UsageError(fmt::format("--data {}: the network has no input or loss {}{}; it has {}",
                                   text, name, suggestion(name, all), fmt::join(all, ", ")));
    if (!request.path.empty())
      throw UsageError(
          fmt::format("--data names two data sets, {} and {}; to give an input or a "
                      "loss a file of its own, use NAME=FILE",
                      request.path, text));
    request.path = text;
  }
  if (!request.path.empty()) return;
  const std::size_t wanted = request.samples_alone ? inputs.size() : all.size();
  for (std::size_t i = 0; i < wanted; ++i)
    if (place(i).file.empty())
      throw UsageError(
          fmt::format("--data lacks {}: name its file as {}=FILE, or a data set that holds it",
                      all[i], all[i]));
}

}  // namespace stratplan
