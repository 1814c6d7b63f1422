/// Collects for each label the keys of a new run that carry it, by their ordinals (ranks in key
/// order). All lists lie in one array: how long each may get is known before.
struct MembershipBuilder {
  private var ordinals: [UInt32]
  private var byLabel = IDMap()
  /// Where in `ordinals` the list of each label of `init` begins, and one more for the end.
  private var starts: [Int] = [0]
  /// How many ordinals each list has so far.
  private var filled: [UInt32]

  /// - Parameter labels: ids, each with the most keys that may carry it.
  init(_ labels: [(id: UInt32, most: Int)]) {
    starts.reserveCapacity(labels.count + 1)
    for (place, label) in labels.enumerated() {
      byLabel.insert(label.id, place)
      starts.append(starts[place] + label.most)
    }
    filled = [UInt32](repeating: 0, count: labels.count)
    ordinals = [UInt32](repeating: 0, count: starts[labels.count])
  }

  /// Whether no labels were announced.
  var hasNoLabels: Bool { filled.isEmpty }

  /// Notes that a key carries a label; ordinals come in ascending order.
  mutating func add(_ ordinal: UInt32, to label: UInt32) throws(IndexError) {
    guard let place = byLabel[label], starts[place] + Int(filled[place]) < starts[place + 1] else {
      throw Self.inconsistent
    }
    ordinals[starts[place] + Int(filled[place])] = ordinal
    filled[place] += 1
  }

  func ordinals(of label: UInt32) -> ArraySlice<UInt32> {
    guard let place = byLabel[label] else { return [] }
    return ordinals[starts[place]..<(starts[place] + Int(filled[place]))]
  }

  static var inconsistent: IndexError {
    .runInvalid(FormatError("counts of labels differ from the keys that carry them"))
  }
}
