public import TidemarkEngine

/// A cache as it was at one moment. A sync that switches to another generation does not change what
/// the view shows.
///
/// ```swift
/// let catalogue = try cache.view()
/// let first = try catalogue.value(forKey: "1"), second = try catalogue.value(forKey: "2")
/// ```
/// What it shows stays on the disk as long as it lives.
public struct CacheView<Value: Sendable>: Sendable {
  fileprivate let cache: Cache<Value>
  /// The view of the store that this cache view reads from.
  public let view: StoreView
  /// The generation of the mirrored collection that the view shows; nil when the cache mirrors
  /// none.
  public let generation: UInt64?

  /// Reads the value of a key in this view, valid or stale.
  /// - Parameter key: the key, without the cache's prefix.
  /// - Returns: nil when there was none.
  /// - Throws: `coding` where the value cannot be decoded, `damaged`, `closed`, `inputOutput`.
  public func value(forKey key: some BytesConvertible) throws(TidemarkError) -> Value? {
    guard let bytes = try view.value(forKey: cache.full(key)) else { return nil }
    return try cache.decode(bytes)
  }

  /// Reads all keys in this view, without the cache's prefix, in byte order.
  /// - Parameter labels: a filter; only keys of entries whose labels pass it are returned.
  /// - Throws: `damaged`, `closed`, `inputOutput`.
  public func keys(labels: LabelFilter = .everything) throws(TidemarkError) -> [Key] {
    var rows = try view.keys(EntryQuery(prefix: cache.region.prefix, labels: labels, values: false))
    var keys: [Key] = []
    while let key = try rows.next() {
      keys.append(Key(Array(key.bytes.dropFirst(cache.region.prefix.count))))
    }
    return keys
  }
}

extension Cache {
  /// Makes a view of the cache as it is now, for reads that must see one state.
  public func view() throws(TidemarkError) -> CacheView<Value> {
    let view = try store.view()
    let collection = try view.entry(forKey: ReservedKeys.collection(region.prefix))
    return CacheView(cache: self, view: view, generation: collection?.sequence)
  }
}
