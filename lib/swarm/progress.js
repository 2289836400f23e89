/**
 * Shows progress on stderr: a bar on a terminal, else a line at the end of each phase.
 */

const FORMAT = '{phase} {bar} {value}/{total}  {note}';

/** @param {boolean} quiet */
export async function createProgress(quiet) {
  if (quiet) return new SilentProgress();
  if (!process.stderr.isTTY) return new LineProgress();
  const { default: cliProgress } = await import('cli-progress');
  return new BarProgress(cliProgress);
}

/** The interface of progress. The base class shows nothing. */
class SilentProgress {
  /**
   * @param {string} phase
   * @param {number} total
   */
  begin(phase, total) {
    this.phase = phase;
    this.total = total;
  }

  /**
   * @param {number} value part of the total
   * @param {string} note a few words
   */
  update() {}

  /** Ends the phase. @param {string} [note] */
  end() {}
}

class LineProgress extends SilentProgress {
  update(value, note) {
    this.last = { value, note };
  }

  end(note = this.last?.note ?? '') {
    process.stderr.write(`${this.phase}: ${note}\n`);
    this.last = undefined;
  }
}

class BarProgress extends SilentProgress {
  #bar;

  constructor(cliProgress) {
    super();
    this.#bar = new cliProgress.SingleBar(
      { format: FORMAT, stream: process.stderr, hideCursor: true, barsize: 32, fps: 8 },
      cliProgress.Presets.shades_classic
    );
  }

  begin(phase, total) {
    super.begin(phase, total);
    this.#bar.start(total, 0, { phase: phase.padEnd(9), note: '' });
  }

  update(value, note) {
    this.#bar.update(Math.min(value, this.total), { note });
  }

  end(note) {
    if (note !== undefined) this.#bar.update({ note });
    this.#bar.stop();
  }
}
