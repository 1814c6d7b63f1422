/// A range of keys with the order in which it is walked.
struct KeyRange {
  /// The ends in byte order, also where the walk is descending.
  var lower: KeyCut
  var upper: KeyCut
  var descending: Bool

  /// The range that begins at `from` and goes towards `to` in the order of the walk.
  init(from: KeyBound, upTo to: KeyBound, descending: Bool) {
    lower = (descending ? to : from).cut(isLower: true)
    upper = (descending ? from : to).cut(isLower: false)
    self.descending = descending
  }
}
