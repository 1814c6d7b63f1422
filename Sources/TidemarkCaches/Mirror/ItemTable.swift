package import TidemarkEngine

/// The items of a collection: keys and hashes in one piece of memory, 16 bytes more for each.
package struct ItemTable: Sendable {
  private struct Row: Sendable {
    var start: Int
    var keyLength: Int32
    var hashLength: Int32
  }

  private var arena: [UInt8] = []
  private var rows: [Row] = []
  private let prefixLength: Int
  /// The starts of items that were added again with another hash.
  private var ambiguous: Set<Int> = []

  /// - Parameter prefixLength: the length of the cache's prefix, in bytes.
  package init(prefixLength: Int) { self.prefixLength = prefixLength }

  /// How many items there are.
  package var count: Int { rows.count }

  /// Adds an item.
  /// - Throws: `invalidArgument` for a key or hash that cannot be kept, `limitExceeded`.
  package mutating func add(_ key: RawSpan, hash: RawSpan) throws(TidemarkError) {
    let room = Limits.keyBytes - prefixLength - ReservedKeys.staged.count
    guard (1...room).contains(key.byteCount), (1...Limits.hashBytes).contains(hash.byteCount)
    else {
      throw TidemarkError(
        .invalidArgument,
        "an item with a key of \(key.byteCount) bytes and a hash of \(hash.byteCount); "
          + "here they have 1 to \(room), and 1 to \(Limits.hashBytes)")
    }
    guard rows.count < Limits.collectionItems,
      arena.count + key.byteCount + hash.byteCount <= Limits.collectionBytes
    else {
      throw TidemarkError(
        .limitExceeded,
        "a collection of more than \(Limits.collectionItems) items, or of more than "
          + "\(Limits.collectionBytes >> 20) MiB of keys and hashes; split it")
    }
    append(key, hash)
  }

  /// Takes an item out that was added before.
  package mutating func remove(_ key: RawSpan) {
    append(key, [UInt8]().rawSpan)
  }

  private mutating func append(_ key: RawSpan, _ hash: RawSpan) {
    let row = Row(
      start: arena.count, keyLength: Int32(key.byteCount), hashLength: Int32(hash.byteCount))
    arena.append(copying: key)
    arena.append(copying: hash)
    rows.append(row)
  }

  /// Puts the items into the order of keys; of a key that was added twice the last remains.
  package mutating func sort() {
    let table = self
    rows.sort { a, b in
      let order = table.key(a).compare(to: table.key(b))
      return order == 0 ? a.start < b.start : order < 0
    }
    var kept: [Row] = []
    kept.reserveCapacity(rows.count)
    for row in rows {
      if let last = kept.last, key(last).isEqual(to: key(row)) {
        let isSame = hash(last).isEqual(to: hash(row))
        if !isSame || ambiguous.contains(last.start) { ambiguous.insert(row.start) }
        kept.removeLast()
      }
      kept.append(row)
    }
    kept.removeAll { $0.hashLength == 0 }
    rows = kept
  }

  @_lifetime(borrow self)
  private func key(_ row: Row) -> RawSpan {
    arena.rawSpan.extracting(row.start..<(row.start + Int(row.keyLength)))
  }

  /// The key of an item, without the cache's prefix.
  @_lifetime(borrow self)
  package func key(_ index: Int) -> RawSpan { key(rows[index]) }

  /// Whether an item was added with different hashes, so that nobody knows which is right.
  func isAmbiguous(_ index: Int) -> Bool {
    !ambiguous.isEmpty && ambiguous.contains(rows[index].start)
  }

  /// The hash of an item.
  @_lifetime(borrow self)
  package func hash(_ index: Int) -> RawSpan { hash(rows[index]) }

  @_lifetime(borrow self)
  private func hash(_ row: Row) -> RawSpan {
    let start = row.start + Int(row.keyLength)
    return arena.rawSpan.extracting(start..<(start + Int(row.hashLength)))
  }

  /// An item as programs know it.
  package func item(_ index: Int) -> MirrorItem {
    MirrorItem(Key([UInt8](copying: key(index))), hash: [UInt8](copying: hash(index)))
  }

  /// The place of a key in the sorted table; nil where it is none of the collection's.
  package func index(of key: RawSpan) -> Int? {
    let index = rows.indices.partitioningIndex { self.key($0).compare(to: key) >= 0 }
    return index < rows.count && self.key(index).isEqual(to: key) ? index : nil
  }
}
