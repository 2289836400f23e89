import { setEnabled, make, put, style } from '../../arena-pages/elements.js';
import { button, editor } from './editor.js';

/** The quiz on the panel: the open question; buttons to end it, to skip it, and to show the result; the editor. */

/** Returns the state of the quiz in words. */
function wordsOf({ players, value }) {
  const { index, of, question, answered, left, right } = value;
  const state =
    right === undefined
      ? `${answered} of ${players} have answered, ${left} s left`
      : `the answer is shown, ${left} s left`;
  return `Question ${index + 1} of ${of}, “${question}”: ${state}`;
}

export function start({ root, control: startControl, command, content, slider }) {
  const sheet = style(import.meta.url);
  const quiz = make('div', { className: 'panel-quiz', into: root });
  const stateLine = make('p', { into: quiz });
  const buttons = make('div', { className: 'chips', into: quiz });
  const settings = make('div', { className: 'sliders', into: quiz });
  for (const name of ['seconds', 'pause']) slider(settings, name);
  editor(quiz, content);
  let control = startControl;
  let value = null;

  // The commands have the step's number: a late click can't end another step, nor can the second of a double click.
  const stepCommand = (name) => (event) =>
    event.detail < 2 && command({ settings: { [name]: value.step } });
  const end = button(buttons, 'Show the answer', stepCommand('end'));
  const skip = button(buttons, 'Leave this question out', stepCommand('skip'));
  const result = button(buttons, 'To the result', () => command({ page: 'result' }));

  function show() {
    const isAsking = control.running && value?.step !== undefined;
    const isOpen = isAsking && value.right === undefined;
    setEnabled(end, isAsking);
    setEnabled(skip, isOpen);
    setEnabled(result, control.running);
    put(end, isAsking && !isOpen ? 'Next question' : 'Show the answer');
  }

  return {
    control(next) {
      control = next;
      if (!control.running) put(stateLine, 'Start asks the first question.');
      show();
    },
    value(reduced) {
      ({ value } = reduced);
      if (control.running && value?.step !== undefined) put(stateLine, wordsOf(reduced));
      show();
    },
    stop: () => sheet.remove()
  };
}
