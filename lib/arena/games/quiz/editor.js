import { make, put } from '../../arena-pages/elements.js';
import { ANSWERS, CHARACTERS, readQuestions } from './questions.js';

/** The editor of questions on the panel. It also loads questions from a file, and saves them to one. */

const EMPTY = { question: '', answers: ['', '', '', ''], right: 0 };

/** Adds a button in the panel's style. It does nothing while aria-disabled. */
export function button(into, text, action) {
  const element = make('button', { className: 'chip', text, into });
  element.addEventListener(
    'click',
    (event) => element.getAttribute('aria-disabled') !== 'true' && action(event)
  );
  return element;
}

function addTextInput(into, label, value) {
  const input = make('input', { type: 'text', maxlength: CHARACTERS, 'aria-label': label, into });
  input.value = value;
  return input;
}

/** Adds the inputs for one answer: its text, and whether it is the right one. */
function addAnswer(into, name, { text = '', right = false } = {}) {
  const index = into.children.length;
  const letter = String.fromCharCode(65 + index);
  const row = make('div', { className: 'answer', into });
  const radio = make('input', {
    type: 'radio',
    name,
    'aria-label': `${letter} is right`,
    into: row
  });
  radio.checked = right;
  addTextInput(row, `Answer ${letter}`, text);
}

let fieldCount = 0; // number of fields made so far, for unique names of their radio buttons

/** Adds the inputs for one question. */
function addQuestion(form, { question, answers, right }) {
  const field = make('fieldset', { into: form });
  make('legend', { into: field });
  addTextInput(field, 'Question', question).className = 'asked-text';
  const list = make('div', { className: 'answers', into: field });
  const name = `right-${(fieldCount += 1)}`;
  for (const [at, text] of answers.entries()) addAnswer(list, name, { text, right: at === right });
  const buttons = make('div', { className: 'chips buttons', into: field });
  const addButton = button(buttons, 'One more answer', () => {
    addAnswer(list, name);
    addButton.hidden = list.children.length >= ANSWERS;
    list.lastElementChild.querySelector('[type=text]').focus();
  });
  addButton.hidden = answers.length >= ANSWERS;
  button(buttons, 'Remove this question', () => {
    const next = field.nextElementSibling ?? field.previousElementSibling;
    field.remove();
    numberQuestions(form);
    (next?.querySelector('.asked-text') ?? form.nextElementSibling.firstElementChild).focus();
  });
  numberQuestions(form);
  return field;
}

function numberQuestions(form) {
  for (const [at, { firstElementChild }] of [...form.children].entries()) {
    put(firstElementChild, `Question ${at + 1}`);
  }
}

/** Returns the questions in the form, without empty answers. */
function readForm(form) {
  return [...form.children].map((field) => {
    const answers = [...field.querySelectorAll('.answer')].map((row) => ({
      text: row.lastElementChild.value.trim(),
      right: row.firstElementChild.checked
    }));
    const written = answers.filter(({ text }) => text !== '');
    return {
      question: field.querySelector('.asked-text').value.trim(),
      answers: written.map(({ text }) => text),
      right: written.findIndex(({ right }) => right)
    };
  });
}

/** Saves the questions as a download. */
function download(questions) {
  const text = `${JSON.stringify(questions, null, 2)}\n`;
  const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  make('a', { href: url, download: 'questions.json' }).click();
  URL.revokeObjectURL(url);
}

/**
 * Adds the editor.
 *
 * @param {HTMLElement} root
 * @param {{read: () => Promise<unknown>, write: (value: unknown) => Promise<string>}} content as a panel.js gets it
 */
export function editor(root, content) {
  const details = make('details', { className: 'edit', into: root });
  make('summary', { text: 'Questions', into: details });
  const form = make('div', { into: details });
  const buttons = make('div', { className: 'chips buttons', into: details });
  const messageLine = make('p', { className: 'wrong', role: 'status', into: details });
  const file = make('input', {
    type: 'file',
    accept: '.json,application/json',
    hidden: '',
    into: details
  });

  function show(questions) {
    form.replaceChildren();
    for (const one of questions) addQuestion(form, one);
  }

  /** Runs an action on the questions, and shows its message or error. One without words leaves those of a later one. */
  async function attempt(action) {
    put(messageLine, '');
    try {
      const words = await action();
      if (words) put(messageLine, words);
    } catch (error) {
      const { message } = error;
      put(messageLine, `${message[0].toUpperCase()}${message.slice(1)}.`);
    }
  }

  const isEmpty = () => form.children.length === 0;
  async function load(isWanted = () => true) {
    const questions = await content.read();
    if (!isWanted()) return undefined; // The user has begun to write questions meanwhile.
    if (!Array.isArray(questions)) return 'The questions can’t be read just now.';
    return show(questions);
  }
  details.addEventListener(
    'toggle',
    () => details.open && isEmpty() && attempt(() => load(isEmpty))
  );
  file.addEventListener('change', () =>
    attempt(async () => {
      const [chosen] = file.files;
      file.value = '';
      if (chosen === undefined) return undefined;
      let value;
      try {
        value = JSON.parse(await chosen.text());
      } catch {
        throw new Error(`${chosen.name} is no JSON`);
      }
      show(readQuestions(value));
      return `${value.length} questions from ${chosen.name}. Use them, and they are asked.`;
    })
  );
  button(buttons, 'One more question', () => {
    addQuestion(form, EMPTY).querySelector('.asked-text').focus();
  });
  button(buttons, 'Use these questions', () =>
    attempt(async () => {
      const error = await content.write(readQuestions(readForm(form)));
      return error || 'These are the questions now.';
    })
  );
  button(buttons, 'Load a file', () => file.click());
  button(buttons, 'Save to a file', () => attempt(() => download(readQuestions(readForm(form)))));
  button(buttons, 'Those that came with the quiz', () =>
    attempt(async () => {
      const error = await content.write(null);
      return error || (await load()) || 'These are the questions now.';
    })
  );
}
