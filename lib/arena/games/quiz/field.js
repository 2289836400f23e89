import { make, put, style } from '../../arena-pages/elements.js';

/** The quiz on the big screen: the question, and a bar for each answer that grows while people answer. */

export function start({ root }) {
  const sheet = style(import.meta.url);
  const quiz = make('div', { className: 'quiz field-quiz', into: root });
  const top = make('p', { className: 'top', into: quiz });
  const [place, answered] = [make('span', { into: top }), make('span', { into: top })];
  const head = make('div', { attributes: { role: 'status' }, into: quiz });
  const question = make('h2', { className: 'big', into: head });
  const bars = make('div', { className: 'bars', into: quiz });
  const clock = make('div', {
    className: 'clock',
    attributes: { 'aria-hidden': true },
    into: quiz
  });
  make('i', { into: clock });
  let shown = '';
  let last = null;
  let began = 0; // of the round, by this page's clock

  function build(name, texts) {
    if (name === shown) return;
    shown = name;
    bars.replaceChildren();
    for (const [at, text] of texts.entries()) {
      const bar = make('div', { className: 'bar', attributes: { 'data-at': at % 6 }, into: bars });
      make('i', { into: bar });
      make('b', { text: texts.length > 6 ? at + 1 : String.fromCharCode(65 + at), into: bar });
      make('span', { text, into: bar });
      make('b', { className: 'count', into: bar });
    }
  }

  function fill(shares, texts) {
    for (const [at, bar] of [...bars.children].entries()) {
      bar.style.setProperty('--share', shares[at]);
      put(bar.lastChild, texts[at]);
    }
  }

  function showResult(round, { shares }) {
    quiz.dataset.open = true;
    const mean = Math.round(shares.reduce((sum, one) => sum + one, 0) / shares.length);
    put(place, 'Result');
    put(answered, '');
    put(question, `The room was right ${mean} times of a hundred`);
    build(
      `${round} end`,
      shares.map((_, at) => `Question ${at + 1}`)
    );
    fill(
      shares.map((one) => one / 100),
      shares.map((one) => `${one} %`)
    );
  }

  return {
    value({ round, time, players, value }) {
      last = value;
      if (!value) return;
      began = performance.now() - time;
      if (value.shares) return showResult(round, value);
      const { index, of, answers, counts, right } = value;
      put(place, `Question ${index + 1} of ${of}`);
      put(answered, `${value.answered} of ${players} have answered`);
      put(question, value.question);
      build(`${round} ${index}`, answers);
      const most = Math.max(1, ...counts, players / 2);
      fill(
        counts.map((one) => one / most),
        counts
      );
      quiz.dataset.open = right === undefined;
      for (const [at, bar] of [...bars.children].entries()) {
        if (at === right) bar.dataset.right = '';
      }
      root.dataset.counts = counts.join(' ');
    },
    frame(now) {
      const open = last && !last.shares && last.right === undefined;
      const left = open ? (last.until - (now - began)) / (last.until - last.since) : 0;
      clock.style.setProperty('--left', Math.min(1, Math.max(0, left)));
    },
    stop: () => sheet.remove()
  };
}
