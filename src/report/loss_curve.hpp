#pragma once
// How the loss went, drawn in one line of text.
#include <string>
#include <vector>

namespace stratplan {

/// At most `width` blocks of eight heights, from the lowest mean to the highest; each stands for
/// equally many consecutive steps, whose losses are averaged. A mean that is no number is a
/// question mark.
std::string loss_curve(const std::vector<double>& losses, std::size_t width = 60);
/// The first and the last loss, and from eight steps on the curve on a line of its own. At least
/// one loss.
std::string loss_summary(const std::vector<double>& losses);

}  // namespace stratplan
