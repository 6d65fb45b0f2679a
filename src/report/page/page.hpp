#pragma once
// A report as one HTML page that needs nothing else: no other file, no network, no script to be
// read. A script only hides the plans that are not chosen.
#include <string>
#include <vector>

#include "model/base/system/provenance.hpp"
#include "report/page/figures.hpp"
#include "report/scaling/scaling.hpp"

namespace stratplan {

struct PageContents {
  std::vector<ReportedPlan> plans;  ///< the plan to use first
  std::vector<Scaling> scalings;
  std::vector<std::string> remarks;   ///< sentences about the plans
  std::vector<std::string> commands;  ///< that make the results again
  Provenance provenance;
};

/// One sentence: the plan to use, its time with range and tier, and how it compares with the other
/// plans. Empty without plans.
std::string answer_of(const std::vector<ReportedPlan>& plans);

struct Page {
  std::string html;             ///< the document
  std::vector<Figure> figures;  ///< all of the document, in its order
};
Page make_page(const PageContents& contents);

}  // namespace stratplan
