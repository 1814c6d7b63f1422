public import TidemarkEngine

/// A source that can be read from: a ``Store``, which always shows the newest state, and a
/// ``StoreView``, which shows one state for ever.
///
/// Reads are synchronous: memory, or one short read of the disk. They run beside writers and
/// wait for none.
public protocol StoreReader: Sendable {
  /// Where reads go; of no use outside the library.
  var source: ReadSource { get }

  /// Calls `body` with a key's value: what the functions for programs are compiled around, of no
  /// use outside the library.
  /// - Returns: false when there is no such key.
  func read(
    _ key: RawSpan, _ body: (RawSpan) throws(TidemarkError) -> Void
  ) throws(TidemarkError) -> Bool
}

extension Store: StoreReader {
  /// Where reads go; of no use outside the library.
  public var source: ReadSource { ReadSource(store: self, view: nil) }

  /// Calls `body` with a key's value; of no use outside the library.
  // By way of `source` threads would wait for each other, since each read counted a reference.
  public func read(
    _ key: RawSpan, _ body: (RawSpan) throws(TidemarkError) -> Void
  ) throws(TidemarkError) -> Bool {
    try engine.reader.read(forKey: key) { (value, _) throws(TidemarkError) in try body(value) }
  }
}
