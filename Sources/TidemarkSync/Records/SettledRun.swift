internal import TidemarkSyncProtocol

/// Own operations at even distances, in the log and in the feed: what was sent in one batch, or
/// edit by edit.
package struct SettledRun: Sendable, Hashable {
  package var first: UInt64
  package var count: UInt64
  package var epoch: UInt64
  package var offset: UInt64
  /// The distance of two sequences.
  package var step: UInt64 = 1
  /// The distance of two offsets.
  package var stride: UInt64 = 1

  package var last: UInt64 { first + (count - 1) * step }
  package var lastOffset: UInt64 { offset + (count - 1) * stride }

  static let mostDistance: UInt64 = 1 << 16

  /// How many operations stand before a sequence.
  func count(before sequence: UInt64) -> UInt64 {
    sequence <= first ? 0 : min(count, (sequence - first + step - 1) / step)
  }

  /// Where an operation stands; nil when it is not of this run.
  func position(of sequence: UInt64) -> Position? {
    guard first <= sequence, sequence <= last, (sequence - first) % step == 0 else { return nil }
    return Position(epoch: epoch, offset: offset + (sequence - first) / step * stride)
  }

  var sequences: some Sequence<UInt64> {
    (0..<count).lazy.map { first + $0 * step }
  }

  /// Goes on with a run whose operations follow without a gap, here and in the feed.
  /// - Returns: false when it does not go on so; then nothing has changed.
  mutating func join(_ next: SettledRun) -> Bool {
    guard epoch == next.epoch, step == 1, stride == 1, next.step == 1, next.stride == 1,
      last + 1 == next.first, lastOffset + 1 == next.offset
    else { return false }
    count += next.count
    return true
  }

  /// Goes on with an operation behind all others, at the distance that it has.
  /// - Returns: false when it has another one; then nothing has changed.
  mutating func extend(_ sequence: UInt64, at position: Position) -> Bool {
    guard epoch == position.epoch, position.offset > lastOffset, sequence > last else {
      return false
    }
    let (ahead, beyond) = (sequence - last, position.offset - lastOffset)
    if count == 1 {
      guard ahead <= Self.mostDistance, beyond <= Self.mostDistance else { return false }
      (step, stride) = (ahead, beyond)
    } else if ahead != step || beyond != stride {
      return false
    }
    count += 1
    return true
  }
}

extension SettledRun {
  /// Its operations one behind the other; nil where there are none.
  init?(_ run: SettledRun, from: UInt64, count: UInt64) {
    guard count > 0 else { return nil }
    self = run
    first += from * step
    offset += from * stride
    self.count = count
    if count == 1 { (step, stride) = (1, 1) }
  }
}
