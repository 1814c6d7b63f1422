/// The newest entry of one of many keys, as the index knows it.
package struct KeyedEntry: Sendable, Hashable {
  /// The hash of the key.
  package var hash: UInt64
  /// The sequence of the key's newest entry; 0 where it is absent.
  package var sequence: UInt64
  package var isTouch: Bool
  /// Whether it is a cached value.
  package var isCached = false

  package init(hash: UInt64, sequence: UInt64 = 0, isTouch: Bool = false) {
    self.hash = hash
    self.sequence = sequence
    self.isTouch = isTouch
  }

  fileprivate init(hash: UInt64, _ slot: Slot?) {
    self.init(hash: hash)
    guard let slot, !slot.isDeleted else { return }
    sequence = slot.sequence
    isTouch = slot.size.isTouched
    isCached = slot.size.isCached
  }
}

extension Reader {
  /// So many keys are looked up one behind the other.
  private static let keysAtOnce = 64

  /// The newest entries of many keys.
  ///
  /// The runs of the index, where something may have to be read from the disk, are looked into
  /// while nobody waits; what was written since is, for some keys at a time, under the readers'
  /// lock.
  /// - Parameters:
  ///   - prefix: what the keys begin with.
  ///   - ends: the rest of each; in ascending order they are found faster.
  package func newestEntries(
    ofKeysWith prefix: [UInt8], _ ends: [[UInt8]]
  ) throws(TidemarkError) -> [KeyedEntry] {
    if ends.count == 1 {
      let key = prefix + ends[0]
      let hash = KeyHash.hash(key.rawSpan, seed: hashSeed)
      return [KeyedEntry(hash: hash, try slot(ofKey: key.rawSpan, hash: hash))]
    }
    var found: [KeyedEntry] = []
    found.reserveCapacity(ends.count)
    var keys = KeyPage()
    var hashes: [UInt64] = []
    var key = prefix
    var nearby = NearbyKeys(reading.withLock { $0.index.runs })
    while found.count < ends.count {
      keys.removeAll()
      hashes.removeAll(keepingCapacity: true)
      for end in ends[found.count...].prefix(Self.keysAtOnce) {
        key.removeSubrange(prefix.count...)
        key.append(contentsOf: end)
        keys.append(key.rawSpan, Slot(sequence: 0, labelSet: 0, size: .deleted))
        hashes.append(KeyHash.hash(key.rawSpan, seed: hashSeed))
      }
      let slots = (try? nearby.slots(of: keys, hashes)) ?? []
      try addEntries(of: keys, hashes, slots, &nearby, to: &found)
    }
    return found
  }

  /// - Parameter slots: what the runs say, as far as they could be read.
  private func addEntries(
    of keys: KeyPage, _ hashes: [UInt64], _ slots: [Slot?], _ nearby: inout NearbyKeys,
    to found: inout [KeyedEntry]
  ) throws(TidemarkError) {
    let first = found.count
    try withIndex { (read) throws(IndexOrStoreError) in
      // The index may be made anew midway, and then all is asked again.
      found.removeSubrange(first...)
      let isCurrent = nearby.isCurrent(read.index)
      if !isCurrent { nearby = NearbyKeys(read.index.runs) }
      read.index.prefetch(hashes, runs: false)
      for number in 0..<keys.count {
        let key = keys.key(at: number)
        var slot = read.index.lookupDeltas(key, hash: hashes[number])
        if slot == nil, isCurrent, number < slots.count {
          slot = slots[number]
        } else if slot == nil {
          do throws(IndexError) {
            slot = try read.index.runs.lookup(key, hash: hashes[number])
          } catch { throw .index(error) }
        }
        if read.staleBelow > 0, slot?.sequence ?? 0 < read.staleBelow {
          throw .store(TidemarkError.possiblyStale(read.staleBelow))
        }
        found.append(KeyedEntry(hash: hashes[number], slot))
      }
    }
  }
}
