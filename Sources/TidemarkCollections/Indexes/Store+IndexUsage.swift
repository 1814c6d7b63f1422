internal import TidemarkEngine

/// The space that one index takes, as ``Store/indexUsage()`` reports it.
public struct IndexUsage: Sendable, Hashable {
  /// The name of the collection that the index belongs to.
  public var collection: String
  /// The name that the index was declared with.
  public var index: String
  /// The number of rows in the index: one for each value of an object, or one for each text.
  public var rows: Int
  /// The approximate bytes of the index's rows before compression, which leaves about a third. The
  /// words of a full-text index count too.
  public var bytes: Int
}

extension Store {
  /// Measures the space of the indexes of all collections, including those that this program does
  /// not declare.
  ///
  /// Looks at every row.
  /// - Throws: `closed`, `damaged`, `inputOutput`.
  public func indexUsage() throws(TidemarkError) -> [IndexUsage] {
    var usage: [IndexUsage] = []
    for member in try indexes.members().all {
      for row in member.now.catalog.rows {
        let (rows, bytes) = try engine.reader.extent(ofPrefix: IndexKeys.rows(ofIndex: row.number))
        var index = IndexUsage(collection: member.name, index: row.name, rows: rows, bytes: bytes)
        if row.isText {
          index.bytes += try engine.reader.extent(ofPrefix: SearchKeys.blocks(row.number)).bytes
          index.bytes += try engine.reader.extent(ofPrefix: SearchKeys.lengths(row.number)).bytes
        }
        usage.append(index)
      }
    }
    return usage.sorted { ($0.collection, $0.index) < ($1.collection, $1.index) }
  }
}
