import { autocompletion, type CompletionContext, type CompletionResult, closeBrackets } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import {
  bracketMatching,
  foldGutter,
  foldKeymap,
  HighlightStyle,
  indentUnit,
  syntaxHighlighting,
} from '@codemirror/language';
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from '@codemirror/lint';
import { unifiedMergeView } from '@codemirror/merge';
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search';
import { Annotation, EditorState, type Extension, type Text } from '@codemirror/state';
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useEffect, useRef } from 'preact/hooks';
import type { MapProblem } from '../../api/shapes.js';
import { type MapWords, offerAt } from '../../pure/map-words.js';

/** What the editor looks like; it stands in a shadow root, where its styles need no inline style element. */
const THEME = EditorView.theme({
  '&': { height: '100%', backgroundColor: 'var(--surface)', color: 'var(--text)', fontSize: '13px' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--muted)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'light-dark(#1d4f9c0d, #8bb6ff0f)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'light-dark(#bcd2f5, #2b4a7d)',
  },
  '.cm-selectionMatch': { backgroundColor: 'light-dark(#dbe6f8, #22365a)' },
  '.cm-panels': { backgroundColor: 'var(--sunken)', color: 'var(--text)', borderColor: 'var(--line)' },
  '.cm-panels input, .cm-panels button': {
    font: 'inherit',
    color: 'inherit',
    backgroundImage: 'none',
    backgroundColor: 'var(--surface)',
  },
  '.cm-tooltip': { backgroundColor: 'var(--surface)', color: 'var(--text)', border: '1px solid var(--line-strong)' },
  '.cm-diagnostic': { fontFamily: 'var(--font)', whiteSpace: 'pre-wrap', maxWidth: '36rem' },
  '.cm-changedLine': { backgroundColor: 'var(--good-soft) !important' },
  '.cm-deletedChunk': { backgroundColor: 'var(--bad-soft)', color: 'var(--text)' },
  '.cm-changedText, .cm-insertedLine .cm-changedText': { background: 'light-dark(#b9e3c8, #22503a) !important' },
  '.cm-deletedText': { background: 'light-dark(#f5c9c4, #5d2a26) !important' },
  '.cm-collapsedLines': { background: 'var(--sunken)', color: 'var(--muted)' },
});

const COLOURS = HighlightStyle.define([
  { tag: [tags.definition(tags.propertyName), tags.propertyName], color: 'var(--accent)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--good)' },
  { tag: [tags.comment, tags.lineComment], color: 'var(--muted)', fontStyle: 'italic' },
  { tag: [tags.keyword, tags.typeName, tags.labelName], color: 'var(--warn)' },
]);

const COMMON: readonly Extension[] = [
  highlightSpecialChars(),
  lineNumbers(),
  foldGutter(),
  drawSelection(),
  bracketMatching(),
  highlightSelectionMatches(),
  search({ top: true }),
  yaml(),
  indentUnit.of('  '),
  syntaxHighlighting(COLOURS),
  THEME,
  EditorView.lineWrapping,
];

const EDITING: readonly Extension[] = [
  history(),
  closeBrackets(),
  lintGutter(),
  highlightActiveLine(),
  highlightActiveLineGutter(),
  // Tab indents; Escape and then Tab leaves the editor, as its label says.
  keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap, ...foldKeymap, ...lintKeymap, indentWithTab]),
];

/** A change that was not made in the editor. */
const outside = Annotation.define<boolean>();

interface CodeEditorProps {
  readonly label: string;
  readonly value: string;
  /** Absent: it is only read. */
  readonly onChange?: (value: string) => void;
  readonly problems?: readonly MapProblem[];
  /** What can be written, offered to whoever writes. */
  readonly words?: MapWords;
  /** What it is compared with, line by line. */
  readonly original?: string;
  /** Goes there when it changes: a problem that somebody chose. */
  readonly goTo?: { readonly line: number; readonly column: number } | null;
}

/** The text of a conflict map: YAML, with the problems of the coordinator at their places. */
export function CodeEditor({ label, value, onChange, problems = [], words, original, goTo = null }: CodeEditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const changed = useRef(onChange);
  changed.current = onChange;
  const first = useRef(value);
  first.current = value;
  const known = useRef(words);
  known.current = words;
  const written = useRef<string[]>([]);
  const reads = onChange === undefined;

  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' });
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: first.current,
        extensions: [
          COMMON,
          reads ? [EditorState.readOnly.of(true), keymap.of([...defaultKeymap, ...searchKeymap])] : EDITING,
          autocompletion({ override: [(context) => completion(context, known.current)] }),
          original === undefined ? [] : comparedWith(original, reads),
          EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
          EditorView.updateListener.of((update) => {
            const isOutside = update.transactions.some((one) => one.annotation(outside) === true);
            if (!update.docChanged || isOutside || changed.current === undefined) return;
            const text = update.state.doc.toString();
            written.current.push(text);
            changed.current(text);
          }),
        ],
      }),
    });
    view.current = made;
    return () => {
      view.current = null;
      made.destroy();
    };
  }, [label, original, reads]);

  useEffect(() => {
    const editor = view.current;
    // Somebody who types is ahead of what is rendered: a text that was written here is no change from outside.
    const at = written.current.lastIndexOf(value);
    written.current = written.current.slice(at + 1);
    if (at >= 0 || editor === null || editor.state.doc.toString() === value) return;
    editor.dispatch({
      changes: { from: 0, to: editor.state.doc.length, insert: value },
      annotations: outside.of(true),
    });
  }, [value]);

  useEffect(() => {
    const editor = view.current;
    if (editor === null || reads) return;
    editor.dispatch(setDiagnostics(editor.state, diagnosticsOf(problems, editor.state.doc)));
  }, [problems, reads]);

  useEffect(() => {
    const editor = view.current;
    if (editor === null || goTo === null) return;
    const at = positionOf(editor.state.doc, goTo.line, goTo.column);
    editor.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: 'center' }) });
    editor.focus();
  }, [goTo]);

  return <div class={reads ? 'code-editor reads' : 'code-editor'} ref={host} />;
}

function completion(context: CompletionContext, words: MapWords | undefined): CompletionResult | null {
  const line = context.state.doc.lineAt(context.pos);
  const offer = words === undefined ? null : offerAt(line.text.slice(0, context.pos - line.from), words);
  if (offer === null) return null;
  return {
    from: line.from + offer.from,
    options: offer.options.map((label) =>
      offer.areKeys ? { label, apply: `${label}: `, type: 'property' } : { label, type: 'enum' },
    ),
    validFor: /^[a-z_]*$/,
  };
}

const comparedWith = (original: string, reads: boolean): Extension =>
  unifiedMergeView({
    original,
    mergeControls: !reads,
    collapseUnchanged: { margin: 3, minSize: 6 },
    syntaxHighlightDeletions: true,
    diffConfig: { scanLimit: 1_000, timeout: 500 },
  });

function diagnosticsOf(problems: readonly MapProblem[], doc: Text): Diagnostic[] {
  return problems.map(({ code = '', message = '', line = 0, column = 0, warning = false }) => {
    const from = positionOf(doc, line, column);
    const rest = doc.lineAt(from).text.slice(from - doc.lineAt(from).from);
    const length = /^[^\s,:\]}]+/.exec(rest)?.[0].length ?? rest.length;
    return { from, to: from + length, severity: warning ? 'warning' : 'error', source: code, message };
  });
}

/** A place that is not known is the beginning. */
function positionOf(doc: Text, line: number, column: number): number {
  if (line < 1) return 0;
  const at = doc.line(Math.min(line, doc.lines));
  return Math.min(at.from + Math.max(0, column - 1), at.to);
}
