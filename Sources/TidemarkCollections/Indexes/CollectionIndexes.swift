internal import TidemarkEngine

/// The indexes of one collection in a store: which there are, and how rows are made of values.
final class CollectionIndexes: Sendable {
  /// Makes the terms of a value for the indexes in their order.
  typealias Evaluation =
    @Sendable (_ value: [UInt8], _ version: UInt32, _ id: ArraySlice<UInt8>) throws(TidemarkError)
    -> [[RowTerm]]

  struct State: Sendable {
    var catalog: IndexCatalog
    /// Nil while no program has said how rows are made in this opening: then what is written is
    /// marked.
    var evaluation: Evaluation?
    /// Another one for each set of indexes in this opening.
    var schema = 0
    /// Whether there may be objects that are marked.
    var mayHaveMarks = true
    /// How many were marked in this opening.
    var marksMade = 0
    /// Objects that the builder has looked at.
    var objectsDone = 0
    /// Why the builder has stopped.
    var failure: TidemarkError?
    var isBuilding = false
  }

  let name: String
  /// The beginning of the objects' keys.
  let prefix: [UInt8]
  private let state: Lock<State>
  /// Wakes tasks that wait until the builder has stopped.
  let builderStop = Signal()

  init(name: String, catalog: IndexCatalog) {
    self.name = name
    prefix = Array(name.utf8) + [UInt8(ascii: "/")]
    state = Lock(State(catalog: catalog))
  }

  var now: State { state.withLock { $0 } }

  func change<Result>(_ body: (inout State) -> Result) -> Result { state.withLock { body(&$0) } }

  func contains(_ key: RawSpan) -> Bool {
    let prefix = prefix
    return key.byteCount > prefix.count && key.hasPrefix(prefix.rawSpan)
  }

  func id(of key: [UInt8]) -> ArraySlice<UInt8> { key[prefix.count...] }
}

extension CollectionIndexes.State {
  /// Whether all objects are in complete indexes, but for those that can be in none: objects that
  /// are marked are in none yet.
  var isReady: Bool { !mayHaveMarks || !isBuilding && failure == nil }

  func usable(_ layouts: [IndexLayout]) -> [IndexLayout] {
    isReady ? layouts.filter(\.row.isComplete) : []
  }

  /// Most rows of an object.
  static let mostRows = 10_000

  /// The rows of terms.
  /// - Parameter id: how long the object's id is.
  func rows(_ terms: [[RowTerm]], id: Int) throws(TidemarkError) -> [DerivedRow] {
    var rows: [DerivedRow] = []
    for (index, terms) in zip(catalog.rows, terms) {
      for term in terms {
        guard term.bytes.count <= IndexKeys.termBytes else {
          throw TidemarkError(
            .limitExceeded,
            "a value of index \(index.name) has \(term.bytes.count) bytes; it has at most "
              + "\(IndexKeys.termBytes)")
        }
        guard IndexKeys.overhead + term.bytes.count + id <= Limits.keyBytes,
          rows.count < Self.mostRows
        else {
          throw TidemarkError(
            .limitExceeded,
            "index \(index.name) has more than \(Self.mostRows) values of an object, or its id is "
              + "too long to be indexed")
        }
        rows.append(DerivedRow(index: index.number, term: term.bytes, value: term.value))
      }
    }
    return rows
  }
}
