#pragma once
// The losses of a training as one line of text.
#include <string>
#include <vector>

namespace stratplan {

/// Draws the losses as at most `width` block characters of eight heights. Each block stands for
/// nearly equally many consecutive steps; its height is their mean loss, from the lowest mean to
/// the highest. A mean that is not finite is drawn as a question mark.
std::string loss_curve(const std::vector<double>& losses, std::size_t width = 60);
/// Returns a line with the first and the last loss, and for at least eight steps a second line with
/// the curve. Requires at least one loss.
std::string loss_summary(const std::vector<double>& losses);

}  // namespace stratplan
