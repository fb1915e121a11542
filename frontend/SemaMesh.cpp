// Which axes of the mesh shard a tensor of the signature.

#include "frontend/SemaKernel.h"

#include <algorithm>

namespace tk::sema {

std::vector<std::string> KernelSema::shardingOf(const ast::Param &param) {
  std::vector<std::string> axes;
  for (std::size_t i = 0; i < param.shards.size(); ++i) {
    const ast::MeshAxis &axis = param.shards[i];
    axes.push_back(axis.name);
    if (axis.name.empty())
      continue;
    if (std::find(globals.meshAxes.begin(), globals.meshAxes.end(), axis.name) ==
        globals.meshAxes.end()) {
      std::vector<std::string_view> known(globals.meshAxes.begin(), globals.meshAxes.end());
      std::string help = known.empty()
                             ? "declare it at the top of the file: mesh (" + axis.name + ")"
                             : didYouMean(axis.name, known);
      diags.error(Diag::UnknownMeshAxis, axis.span).help(help)
          << "the mesh has no axis '" << axis.name << "'";
      axes.back().clear();
    } else if (auto first = std::find(axes.begin(), axes.end() - 1, axis.name);
               first != axes.end() - 1) {
      diags.error(Diag::AxisUsedTwice, axis.span)
              .label(param.shards[static_cast<std::size_t>(first - axes.begin())].span,
                     "shards this extent")
          << "axis '" << axis.name << "' of the mesh shards two extents of '" << param.name << "'";
      axes.back().clear();
    }
  }
  return axes;
}

} // namespace tk::sema
