#include "kernels.h"

#ifdef LLAMA_BUNDLES
#include "llama.tk.h"
#include "sample.tk.h"
#endif

namespace llama {

namespace {

tk::Module compile(const std::string &path, const std::string &target) {
  tk::CompileOptions options;
  options.target = target;
  return tk::compile_file(path, options);
}

tk::Module model_module(const std::string &folder, const std::string &target) {
#ifdef LLAMA_BUNDLES
  if (target.starts_with("sm_"))
    return model_kernels::bundle();
#endif
  return compile(folder + "/llama.tk", target);
}

tk::Module sample_module(const std::string &folder, const std::string &target) {
#ifdef LLAMA_BUNDLES
  if (target.starts_with("sm_"))
    return sample_kernels::bundle();
#endif
  return compile(folder + "/sample.tk", target);
}

} // namespace

Kernels::Kernels(const std::string &folder, const std::string &target)
    : model(model_module(folder, target)), sample(sample_module(folder, target)),
      random_weights(model.kernel("random_weights")), scale_columns(model.kernel("scale_columns")),
      embed(model.kernel("embed")), embed_normed(model.kernel("embed_normed")),
      qkv(model.kernel("qkv")), rope(model.kernel("rope")), rope_keep(model.kernel("rope_keep")),
      attention_prefill(model.kernel("attention_prefill")),
      attention_decode(model.kernel("attention_decode")), copy_page(model.kernel("copy_page")),
      project(model.kernel("project")), project_parts(model.kernel("project_parts")),
      add_parts(model.kernel("add_parts")), gate_up(model.kernel("gate_up")),
      last_rows(model.kernel("last_rows")), logits(model.kernel("logits")),
      advance(model.kernel("advance")), greedy(sample.kernel("greedy")),
      top_p(sample.kernel("top_p")) {}

void LaunchList::add(const tk::Kernel &kernel, std::initializer_list<tk::Value> values) {
  std::vector<void *> pointers;
  for (const tk::Value &value : values)
    if (const auto *view = std::get_if<tk::TensorView>(&value))
      pointers.push_back(view->data);
  if (m_is_captured)
    kernel.prepare(values);
  m_launches.push_back({kernel.bind(values), std::move(pointers)});
}

void LaunchList::run(tk::Stream stream) const {
  for (const BoundLaunch &launch : m_launches)
    launch.kernel.launch(stream, launch.pointers);
}

} // namespace llama
