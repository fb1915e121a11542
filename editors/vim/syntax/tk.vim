" Syntax of tk kernels.
if exists("b:current_syntax")
  finish
endif
syntax keyword tkKeyword let if then else and or not true false kernel fn const import schedule
syntax keyword tkKeyword grad mesh where in strided inout wrt for when
syntax keyword tkType f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u8 bool
syntax keyword tkFunction exp exp2 expm1 log log2 log1p sqrt rsqrt tanh sigmoid erf sin cos
syntax keyword tkFunction floor ceil round pow fma gelu gelu_tanh silu softplus abs sign relu
syntax keyword tkFunction min max clamp isnan isinf bitand bitor bitxor bitnot shl shr rand pad
syntax keyword tkFunction sum prod mean any all logsumexp argmax argmin softmax log_softmax
syntax keyword tkFunction cumsum cumprod cummax
syntax keyword tkConstant inf nan pi
syntax match tkNumber "\<\d\+\(\.\d\+\)\?\([eE][+-]\?\d\+\)\?\>"
syntax region tkString start=/"/ end=/"/ oneline
syntax match tkComment "//.*$"
highlight default link tkKeyword Keyword
highlight default link tkType Type
highlight default link tkFunction Function
highlight default link tkConstant Constant
highlight default link tkNumber Number
highlight default link tkString String
highlight default link tkComment Comment
let b:current_syntax = "tk"
