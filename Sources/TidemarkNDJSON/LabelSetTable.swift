internal import TidemarkEngine

/// Sets of labels, each kept once and known by its number; number 0 is the empty set.
///
/// Imports repeat few sets many times. All sets lie one after the other in flat arrays, so that a
/// set that was seen before costs a hash and a comparison, and no allocation.
package struct LabelSetTable: Sendable {
  /// The labels of all sets, one after the other.
  private var bytes: [UInt8] = []
  /// Where each label begins in `bytes`, and behind the last one its end.
  private var labelStarts: [Int] = [0]
  /// Where each set begins in `labelStarts`, and behind the last one its end.
  private var setStarts: [Int] = [0, 0]
  private var hashes: [UInt64] = [0]
  /// Open addressing over the sets' hashes; 0 is a free slot.
  private var slots: [Int32] = Array(repeating: 0, count: 64)
  private let seed: UInt64

  package init() {
    // An attacker who writes the file must not be able to choose labels that collide.
    seed = UInt64(truncatingIfNeeded: Hasher().finalize())
  }

  /// How many sets there are, the empty one too.
  package var count: Int { hashes.count }

  /// How many labels a set has.
  package func labelCount(inSet set: Int) -> Int { setStarts[set + 1] - setStarts[set] }

  /// One label of a set, in byte order from 0.
  @_lifetime(borrow self)
  package func label(_ index: Int, inSet set: Int) -> RawSpan {
    let label = setStarts[set] + index
    return bytes.rawSpan.extracting(labelStarts[label]..<labelStarts[label + 1])
  }

  /// The labels of a set, in byte order.
  package func labels(inSet set: Int) -> [[UInt8]] {
    (setStarts[set]..<setStarts[set + 1]).map {
      Array(bytes[labelStarts[$0]..<labelStarts[$0 + 1]])
    }
  }

  /// Forgets all sets but the empty one.
  package mutating func removeAll() {
    guard count > 1 else { return }
    bytes.removeAll(keepingCapacity: true)
    labelStarts.removeLast(labelStarts.count - 1)
    setStarts.removeLast(setStarts.count - 2)
    hashes.removeLast(hashes.count - 1)
    for slot in slots.indices { slots[slot] = 0 }
  }
}

extension LabelSetTable {
  /// The hash of a set whose labels lie in `source`.
  func hash(_ labels: LabelCollector, in source: RawSpan) -> UInt64 {
    var state = seed
    for place in labels.places {
      let label = source.extracting(place.start..<place.start + place.count)
      state = KeyHash.hash(label, seed: state)
    }
    return state
  }

  /// The number of a set; nil when it is new.
  func find(_ labels: LabelCollector, in source: RawSpan, hash: UInt64) -> Int? {
    if labels.places.isEmpty { return 0 }
    var slot = Int(truncatingIfNeeded: hash) & (slots.count - 1)
    while slots[slot] != 0 {
      let set = Int(slots[slot])
      if hashes[set] == hash, isEqual(set, labels, in: source) { return set }
      slot = (slot + 1) & (slots.count - 1)
    }
    return nil
  }

  /// Adds a set that ``find(_:in:hash:)`` did not find, and returns its number.
  mutating func insert(_ labels: LabelCollector, in source: RawSpan, hash: UInt64) -> Int {
    for place in labels.places {
      bytes.append(copying: source.extracting(place.start..<place.start + place.count))
      labelStarts.append(bytes.count)
    }
    setStarts.append(labelStarts.count - 1)
    hashes.append(hash)
    if hashes.count * 2 > slots.count {
      slots = Array(repeating: 0, count: slots.count * 2)
      for set in 1..<hashes.count { occupy(set) }
    } else {
      occupy(hashes.count - 1)
    }
    return hashes.count - 1
  }

  private mutating func occupy(_ set: Int) {
    var slot = Int(truncatingIfNeeded: hashes[set]) & (slots.count - 1)
    while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
    slots[slot] = Int32(set)
  }

  private func isEqual(_ set: Int, _ labels: LabelCollector, in source: RawSpan) -> Bool {
    guard labelCount(inSet: set) == labels.places.count else { return false }
    for (index, place) in labels.places.enumerated() {
      let theirs = source.extracting(place.start..<place.start + place.count)
      guard label(index, inSet: set).isEqual(to: theirs) else { return false }
    }
    return true
  }
}
