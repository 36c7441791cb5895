// Types are checked by tests/pages/test_types.py, layout by Prettier, which reads .editorconfig.
import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["bench/.peers/"] },
  js.configs.recommended,
  {
    rules: {
      eqeqeq: ["error", "always", { null: "ignore" }],
      "max-len": ["error", { code: 100, ignoreStrings: true }],
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-var": "error",
      "prefer-const": "error",
    },
  },
  { files: ["app/**"], languageOptions: { globals: globals.browser } },
  { files: ["bench/**", "tests/**"], languageOptions: { globals: globals.node } },
];
