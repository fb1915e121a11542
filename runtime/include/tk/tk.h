// The public interface of tk in one include: compile `.tk` text or load bundles, launch kernels on
// tensors.
#pragma once

#include "tk/bundle.h"
#include "tk/dtype.h"
#include "tk/error.h"
#include "tk/expr.h"
#include "tk/mesh.h"
#include "tk/mesh_nccl.h"
#include "tk/module.h"
#include "tk/plan.h"
#include "tk/prepare.h"
#include "tk/tensor.h"
