public import TidemarkEngine

/// A source that can be read from: a ``Store``, which always shows the newest state, and a
/// ``StoreView``, which shows one state for ever.
///
/// Reads are synchronous: memory, or one short read of the disk. They run beside writers and
/// wait for none.
public protocol StoreReader: Sendable {
  /// The state that reads go to; used by the library's own extensions.
  var source: ReadSource { get }

  /// Calls `body` with a key's value; for the library alone. Generic functions, which are inlined
  /// into programs, call it: it is not generic itself, so it is compiled once.
  /// - Returns: false when there is no such key.
  func read(
    _ key: RawSpan, _ body: (RawSpan) throws(TidemarkError) -> Void
  ) throws(TidemarkError) -> Bool
}

extension Store: StoreReader {
  /// The newest state of this store; used by the library's own extensions.
  public var source: ReadSource { ReadSource(store: self, view: nil) }

  /// Calls `body` with a key's value; for the library alone.
  // Not by way of `source`: it retains the store for each read, an atomic count that all threads
  // would contend for.
  public func read(
    _ key: RawSpan, _ body: (RawSpan) throws(TidemarkError) -> Void
  ) throws(TidemarkError) -> Bool {
    try engine.reader.read(forKey: key) { (value, _) throws(TidemarkError) in try body(value) }
  }
}
