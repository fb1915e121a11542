;;; tk-mode.el --- Tensor kernels in index notation -*- lexical-binding: t -*-

;;; Code:

(defconst tk-keywords
  '("let" "if" "then" "else" "and" "or" "not" "true" "false" "kernel" "fn"
    "const" "import" "schedule" "grad" "mesh" "where" "in" "strided" "inout" "wrt"
    "for" "when"))

(defconst tk-types
  '("f64" "f32" "f16" "bf16" "f8e4m3" "f8e5m2" "i64" "i32" "i16" "i8" "u8"
    "bool"))

(defconst tk-functions
  '("exp" "exp2" "expm1" "log" "log2" "log1p" "sqrt" "rsqrt" "tanh" "sigmoid"
    "erf" "sin" "cos" "floor" "ceil" "round" "pow" "fma" "gelu" "gelu_tanh"
    "silu" "softplus" "abs" "sign" "relu" "min" "max" "clamp" "isnan" "isinf"
    "bitand" "bitor" "bitxor" "bitnot" "shl" "shr" "rand" "pad" "sum" "prod"
    "mean" "any" "all" "logsumexp" "argmax" "argmin" "softmax" "log_softmax"
    "cumsum" "cumprod" "cummax"))

(defvar tk-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?/ ". 12" table)
    (modify-syntax-entry ?\n ">" table)
    (modify-syntax-entry ?_ "w" table)
    table))

;;;###autoload
(define-derived-mode tk-mode prog-mode "tk"
  "Major mode for tk kernels."
  (setq-local comment-start "// ")
  (setq-local font-lock-defaults
              `(((,(regexp-opt tk-keywords 'words) . font-lock-keyword-face)
                 (,(regexp-opt tk-types 'words) . font-lock-type-face)
                 (,(regexp-opt tk-functions 'words) . font-lock-builtin-face)))))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.tk\\'" . tk-mode))

(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs '(tk-mode "tkc" "lsp")))

(provide 'tk-mode)
;;; tk-mode.el ends here
