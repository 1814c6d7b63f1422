/// The newest entry of one of many keys, as the index knows it.
package struct KeyedEntry: Sendable, Hashable {
  /// The hash of the key.
  package var hash: UInt64
  /// The sequence of the key's newest entry; 0 where it is absent.
  package var sequence: UInt64
  package var isTouch: Bool

  package init(hash: UInt64, sequence: UInt64 = 0, isTouch: Bool = false) {
    self.hash = hash
    self.sequence = sequence
    self.isTouch = isTouch
  }
}

extension Engine {
  /// So many keys are looked up while the index is held.
  private static let keysAtOnce = 64

  /// The newest entries of many keys, for whose memory the processor waits together.
  /// - Parameters:
  ///   - prefix: what the keys begin with.
  ///   - ends: the rest of each.
  package func newestEntries(
    ofKeysWith prefix: [UInt8], _ ends: [[UInt8]]
  ) throws(TidemarkError) -> [KeyedEntry] {
    var found: [KeyedEntry] = []
    found.reserveCapacity(ends.count)
    var keys = KeyPage()
    var hashes: [UInt64] = []
    var key = prefix
    while found.count < ends.count {
      let first = found.count
      keys.removeAll()
      hashes.removeAll(keepingCapacity: true)
      for end in ends[first...].prefix(Self.keysAtOnce) {
        key.removeSubrange(prefix.count...)
        key.append(contentsOf: end)
        keys.append(key.rawSpan, Slot(sequence: 0, labelSet: 0, size: .deleted))
        hashes.append(KeyHash.hash(key.rawSpan, seed: hashSeed))
      }
      try withIndex { (read) throws(IndexOrStoreError) in
        // The index may be made anew midway, and then all is asked again.
        found.removeSubrange(first...)
        read.index.prefetch(hashes)
        for number in 0..<keys.count {
          let slot: Slot?
          do throws(IndexError) {
            slot = try read.index.lookup(keys.key(at: number), hash: hashes[number])
          } catch { throw .index(error) }
          if read.staleBelow > 0, slot?.sequence ?? 0 < read.staleBelow {
            throw .store(Self.possiblyStale(read.staleBelow))
          }
          var entry = KeyedEntry(hash: hashes[number])
          if let slot, !slot.isDeleted {
            entry.sequence = slot.sequence
            entry.isTouch = slot.size.isTouched
          }
          found.append(entry)
        }
      }
    }
    return found
  }
}
