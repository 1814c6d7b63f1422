/// Collects which ordinals carry which label, in flat memory: how many each label will have at most
/// is known before.
struct MembershipBuilder {
  private var ordinals: [UInt32]
  private var byLabel = IDMap()
  /// By place of the label where its ordinals begin; one more than there are labels.
  private var starts: [Int] = [0]
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

  var isEmpty: Bool { filled.isEmpty }

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
    .imageInvalid(FormatError("counts of labels differ from the keys that carry them"))
  }
}
