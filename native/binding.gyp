{
  'includes': ['flags.gypi'],
  'targets': [
    {
      # The rooms: every .cc of each is in it, as one unit of the compiler. The largest come first, so that no core is
      # left alone with one at the end.
      'target_name': 'sprites',
      'sources': ['<!@(node units.js . torus addon http feeds store arena world server base)'],
    },
  ],
}
