import t from 'tap';
import { lengthOf } from '../support/long.js';
import { MOST_TOUCHED, Rig } from '../support/torus-rig.js';

// A fixed amount of work, with nothing to wait for: only a crowded machine makes it long.
t.setTimeout(600_000);

/**
 * What somebody could do to bend the torus out of shape. Each history starts from a torus of `n`
 * nodes and takes nodes out, down to nine at the least: as long as law 4 holds.
 */
const HISTORIES = {
  'every second row leaves': (rig) => rig.leaveWhere(({ row }) => row % 2 === 0),
  'every second column leaves': (rig) => rig.leaveWhere(({ column }) => column % 2 === 0),
  'all rows but the first and the last leave': (rig) => {
    rig.leaveWhere(({ row, rows }) => row > 0 && row < rows - 1);
  },
  'all columns but the first and the last leave': (rig) => {
    rig.leaveWhere(({ column, columns }) => column > 0 && column < columns - 1);
  },
  'row after row leaves from the top': (rig) => {
    for (let line = 0; line < rig.extent().rows; line++) rig.leaveWhere(({ row }) => row === line);
  },
  'column after column leaves from the right': (rig) => {
    for (let line = rig.extent().columns - 1; line >= 0; line--) {
      rig.leaveWhere(({ column }) => column === line);
    }
  },
  'whoever sits in the first row leaves': (rig) => {
    while (rig.size > 9) rig.leaveWhere(({ row }) => row === 0);
  },
  'whoever sits in the first column leaves': (rig) => {
    while (rig.size > 9) rig.leaveWhere(({ column }) => column === 0);
  },
  'whoever sits in the last row leaves': (rig) => {
    while (rig.size > 9) rig.leaveWhere(({ row, rows }) => row === rows - 1);
  },
  'whoever sits in the last column leaves': (rig) => {
    while (rig.size > 9) rig.leaveWhere(({ column, columns }) => column === columns - 1);
  },
  'the newest half leaves': (rig, n) => rig.leaveWhere(({ slot }) => slot >= n / 2),
  'the oldest half leaves': (rig, n) => rig.leaveWhere(({ slot }) => slot < n / 2),
  'the newest leaves again and again': (rig) => {
    while (rig.size > 10) rig.leave(rig.newest());
  },
  'every second one leaves': (rig) => rig.leaveWhere(({ slot }) => slot % 2 === 1),
  'every second one leaves, like a chessboard': (rig) => {
    rig.leaveWhere(({ row, column }) => (row + column) % 2 === 1);
  },
  'all but the diagonal leave': (rig) => rig.leaveWhere(({ row, column }) => row !== column),
  'all but the other diagonal leave': (rig) => {
    rig.leaveWhere(({ row, column, rows }) => row + column !== rows - 1);
  },
  'all but one in every block leave': (rig) => {
    rig.leaveWhere(({ row, column }) => row % 4 !== 0 || column % 4 !== 0);
  },
  'holes are dug side by side, then the grid shrinks': (rig) => {
    const meets = (position) => position % 8 === 3 || position % 8 === 4;
    rig.leaveWhere(({ row, column }) => row % 4 === 1 && meets(column));
    while (rig.size > 10) rig.leave(rig.newest());
  },
  'holes are dug one above the other, then the grid shrinks': (rig) => {
    const meets = (position) => position % 8 === 3 || position % 8 === 4;
    rig.leaveWhere(({ row, column }) => column % 4 === 2 && meets(row));
    while (rig.size > 10) rig.leave(rig.newest());
  },
  'random ones leave until ten are left': (rig, n) => rig.resize(Math.min(n, 10)),
  'at every size around here some leave and join at the end': (rig, n) => {
    for (let size = n; size > Math.max(12, n - 40); size--) {
      for (let i = 0; i < 3; i++) rig.leave(rig.newest());
      for (let i = 0; i < 3; i++) rig.join();
      rig.leave(rig.newest());
    }
  }
};

for (const [down, right] of [
  [0, 0],
  [0, 1],
  [1, 0],
  [1, 1]
]) {
  const name = `the ${down ? 'lower' : 'upper'} ${right ? 'right' : 'left'} corner`;
  const corner = ({ row, column, rows, columns }) =>
    row * 2 >= rows === Boolean(down) && column * 2 >= columns === Boolean(right);
  HISTORIES[`${name} is emptied, then the grid shrinks`] = (rig) => {
    rig.leaveWhere(corner);
    while (rig.size > 10) rig.leave(rig.newest());
  };
  HISTORIES[`all but ${name} leave`] = (rig) => rig.leaveWhere((cell) => !corner(cell));
}

/** One history: from n nodes down, a look, back up, a look. Returns law 5's share down there. */
function play(rig, history, n) {
  rig.resize(n);
  history(rig, n);
  rig.inspect();
  const share = rig.share();
  rig.resize(n);
  rig.inspect();
  return share;
}

for (const [name, history] of Object.entries(HISTORIES)) {
  t.test(name, async (t) => {
    for (const n of [9, 10, 12, 15, 16, 17, 20, 25, 30, 36, 47, 64, 81, 100]) {
      play(new Rig(n, { every: 1, seed: n }), history, n);
    }
    const n = lengthOf({ short: 900, long: 2500 });
    const rig = new Rig(n, { every: 1000, seed: n });
    const share = play(rig, history, n);
    const { mean, most } = rig.account();
    t.comment(
      `${n} nodes: ${mean.toFixed(3)} touched a step, ${most} at most; ` +
        `law 5 for ${share.toFixed(3)}`
    );
    t.ok(most <= MOST_TOUCHED);
  });
}

t.test('very many fall to ten and grow back', async (t) => {
  const n = lengthOf({ short: 20_000, long: 100_000 });
  const rig = new Rig(n, { every: 0.3 * n, seed: 7 });
  rig.resize(n);
  rig.account();
  rig.resize(10);
  rig.inspect();
  const { rows, columns, opened } = rig.extent();
  const fall = rig.account();
  t.ok(opened <= 12, `ten nodes sit in ${opened} slots`);
  t.ok(rows <= 4 && columns <= 4, `in ${rows} rows and ${columns} columns`);
  rig.resize(n);
  rig.inspect();
  const growth = rig.account();
  t.comment(`falling touched ${fall.mean.toFixed(3)} a step, growing ${growth.mean.toFixed(3)}`);
  t.ok(Math.max(fall.most, growth.most) <= MOST_TOUCHED);
});
