import js from "@eslint/js";
import globals from "globals";

export default [
  {
    ignores: ["**/node_modules/", ".venv/", "instance/", "clients/", "bench/.peers/", "htmlcov/"],
  },
  js.configs.recommended,
  {
    languageOptions: { globals: { ...globals.browser } },
    rules: {
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-implied-eval": "error",
      "no-unused-vars": ["error", { varsIgnorePattern: "^_" }],
      "no-var": "error",
      "prefer-const": "error",
    },
  },
  { files: ["**/*.mjs", "eslint.config.js"], languageOptions: { globals: globals.node } },
];
