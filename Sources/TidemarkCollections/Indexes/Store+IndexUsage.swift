internal import TidemarkEngine

/// The space of an index, see ``Store/indexUsage()``.
public struct IndexUsage: Sendable, Hashable {
  /// The name of the collection.
  public var collection: String
  /// The name of the index.
  public var index: String
  /// How many rows it has: one for each value of an object, or each text.
  public var rows: Int
  /// About how many bytes they have before they are compressed, to a third; with the words of a
  /// full-text index.
  public var bytes: Int
}

extension Store {
  /// The space that the indexes of all collections take, those too that this program does not
  /// declare.
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
