internal import TidemarkEngine

/// What can be read from: a ``Store``, which always shows the newest state, and a ``StoreView``,
/// which shows one state for ever.
///
/// Reads are synchronous: memory, or one short read of the disk. They run beside writers and
/// wait for none.
public protocol StoreReader: Sendable {
  /// Where reads go; of no use outside the library.
  var source: ReadSource { get }
}

/// Where reads go.
public struct ReadSource: Sendable {
  /// Kept open while somebody reads.
  let store: Store
  /// Nil for the newest state, whatever that is when it is read.
  let view: EngineView?

  var engine: Engine { store.engine }

  /// The view, or one of the newest state.
  func pinned() throws(TidemarkError) -> EngineView {
    if let view { return view }
    return try engine.view()
  }
}

extension Store: StoreReader {
  /// Where reads go; of no use outside the library.
  public var source: ReadSource { ReadSource(store: self, view: nil) }
}
