/** Who plays, in a league that never was. */

/** By line: the eleven who begin, in a 4-3-3, then the bench. Places are of a half, own goal at 0. */
export const LINES = [
  ['GK', 4, 50],
  ['RB', 22, 84],
  ['CB', 17, 62],
  ['CB', 17, 38],
  ['LB', 22, 16],
  ['DM', 35, 50],
  ['CM', 46, 70],
  ['CM', 46, 30],
  ['RW', 68, 82],
  ['ST', 74, 50],
  ['LW', 68, 18]
];

export const BENCH = ['GK', 'CB', 'FB', 'CM', 'AM', 'WG', 'ST'];

export const TEAMS = [
  {
    id: 'har',
    name: 'Harbour Athletic',
    short: 'HAR',
    color: '#1f6fd6',
    coach: 'M. Oduya',
    players:
      'Aas Bianchi Castel Dube Eriksen Farkas Gallo Haddad Ibarra Jansen Kovač Lund Moreau Novak Okafor Petit Quist Rossi'
  },
  {
    id: 'uni',
    name: 'Union Falls',
    short: 'UNI',
    color: '#d6403a',
    coach: 'S. Albrecht',
    players:
      'Suzuki Tavares Ueda Varga Weiss Ximenes Yilmaz Zidek Amadi Brandt Costa Drummond Engel Ferro Grant Holm Iversen Juhász'
  }
];

/** The others of the league, for its table. */
export const LEAGUE =
  'Northgate,Rivermouth,Old Mill,Saint Brede,Kingsford,Ashdown,Vale City,Port Ellis,Redhill,Eastmoor,Lakeside,Thornbury,Westwood,Milltown,Highbridge,Stonefield'.split(
    ','
  );
