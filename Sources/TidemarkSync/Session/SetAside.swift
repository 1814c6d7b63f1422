internal import TidemarkEngine

/// The facts known of entries that are to be sent again or later, so that not all of them are read
/// for each batch. It is found out again when a program is started.
struct SetAside {
  /// Entries that go when nothing else does.
  var low = SequenceSet()
  /// Entries that others wait for, so that they do not.
  var wanted = SequenceSet()
  /// Entries that come after others.
  private(set) var held = SequenceSet()
  /// The same, by what they come after.
  private var behind: [UInt64: SequenceSet] = [:]
  private var targets = SequenceSet()

  /// Takes note of an entry that comes after another one.
  mutating func hold(_ sequence: UInt64, behind target: UInt64) {
    held.insert(sequence)
    targets.insert(target)
    behind[target, default: SequenceSet()].insert(sequence)
  }

  /// Entries that others come after and that are not to be sent any more themselves: it is sent, or
  /// waits.
  func targets(outside again: SequenceSet) -> SequenceSet { targets.subtracting(again) }

  /// - Returns: what came after an entry.
  mutating func release(_ target: UInt64) -> SequenceSet {
    targets.remove(target)
    let freed = behind.removeValue(forKey: target) ?? SequenceSet()
    held = held.subtracting(freed)
    return freed
  }

  /// Forgets what is not to be sent again.
  mutating func keep(_ again: SequenceSet) {
    low = low.intersection(again)
    wanted = wanted.intersection(again)
    held = held.intersection(again)
  }
}
