/** Every element and behaviour of the console, loaded once. */

import "./theme-switch.js";
import "./relative-time.js";
import "./copy-text.js";
import "./live-light.js";
import "./live-rows.js";
import "./log-view.js";
import "./phase-timeline.js";
import "./resource-progress.js";
import "./resource-graph.js";
import "./diagnostic-cards.js";
import "./plan-changes.js";
import "./page-change.js";
import "./page-dialog.js";
import "./file-editor.js";
import "./spec-form.js";
import "./resource-picker.js";
import "./keys.js";
