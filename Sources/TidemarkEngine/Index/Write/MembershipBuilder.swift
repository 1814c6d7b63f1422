/// Collects which ordinals carry which label, in flat memory: how many each label will have is
/// known before, since the index counts them.
struct MembershipBuilder {
  private var ordinals: [UInt32]
  /// Per label where its ordinals begin; one more than there are labels.
  private var starts: [Int]
  private var filled: [UInt32]

  /// - Parameter counts: per label how many keys carry it.
  init(counts: [Int]) {
    starts = [0]
    starts.reserveCapacity(counts.count + 1)
    for count in counts { starts.append(starts[starts.count - 1] + max(0, count)) }
    filled = [UInt32](repeating: 0, count: counts.count)
    ordinals = [UInt32](repeating: 0, count: starts[counts.count])
  }

  var labelCount: Int { filled.count }

  /// Notes that a key carries a label; ordinals come in ascending order.
  mutating func add(_ ordinal: UInt32, to label: UInt32) throws(IndexError) {
    let label = Int(label)
    guard label < filled.count, starts[label] + Int(filled[label]) < starts[label + 1] else {
      throw Self.inconsistent
    }
    ordinals[starts[label] + Int(filled[label])] = ordinal
    filled[label] += 1
  }

  /// The ordinals that carry a label.
  func ordinals(of label: Int) throws(IndexError) -> ArraySlice<UInt32> {
    guard starts[label] + Int(filled[label]) == starts[label + 1] else {
      throw Self.inconsistent
    }
    return ordinals[starts[label]..<starts[label + 1]]
  }

  private static var inconsistent: IndexError {
    .imageInvalid(FormatError("counts of labels differ from the keys that carry them"))
  }
}
