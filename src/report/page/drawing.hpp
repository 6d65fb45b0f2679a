#pragma once
// What the figures of a report share: scales, bars and legends.
#include <string>

#include "report/page/markup.hpp"
#include "report/page/time_kinds.hpp"

namespace stratplan {

inline constexpr double figure_width = 400;  ///< of a picture, in its units

double ms(Seconds time);
double mebi(Bytes bytes);

/// Maps numbers from 0 to `most` to positions.
struct LinearScale {
  double most, begin, end;
  double operator()(double value) const { return begin + (end - begin) * value / most; }
};
/// The least round number at or above `value`; 1 for 0.
double round_above(double value);

/// Draws the numbers of a scale below the picture's bars, with a faint line at each mark.
void draw_scale(Picture& picture, const LinearScale& scale, double top, double bottom,
                const std::string& title);
/// Draws the kinds' times as parts of a bar. `of`: what the bar is of, for hints.
void draw_parts(Picture& picture, const KindTimes& times, const LinearScale& scale, double y,
                double height, const std::string& of, double opacity = 1);
/// Draws what the kinds' colours mean, in one line.
void draw_kinds(Picture& picture, double y);

KindTimes total(const std::vector<KindTimes>& layers);
/// A comma and the milliseconds of each kind.
std::string csv_of_kinds(const KindTimes& times);
/// The columns of csv_of_kinds(): ",compute_ms" and so on.
std::string kind_columns();

}  // namespace stratplan
