internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Aliases are records by themselves: named by the peer and the alias, so that an alias never has
/// two keys; the value is the key. One that was taken away has no value.
extension PeerRecords {
  func aliases() throws(TidemarkError) -> KnownAliases {
    let known = KnownAliases(own: log.keyLookup)
    guard table.has(.alias) else { return known }
    var changes = AliasChanges(upon: known)
    for name in aliasNames {
      guard let key = try table.value(of: .alias, key: name) else { continue }
      changes.set(Alias(Array(name.dropFirst(aliasPrefix.count))), ofKey: key)
    }
    known.apply(changes)
    return known
  }

  func write(
    _ changes: AliasChanges, into batch: inout OperationBatch
  ) throws(TidemarkError) {
    // In an order, so that the same happens in every run.
    let sorted = changes.keys.sorted { $0.key.bytes.lexicographicallyPrecedes($1.key.bytes) }
    for (alias, key) in sorted {
      try RecordTable.add(
        .alias, key: aliasPrefix + alias.bytes, value: key ?? [], to: &batch)
    }
  }

  var aliasNames: [[UInt8]] {
    let prefix = aliasPrefix
    return table.keys(of: .alias).filter { $0.starts(with: prefix) }
  }

  private var aliasPrefix: [UInt8] {
    var writer = ByteWriter()
    writer.blob(name)
    return writer.bytes
  }
}
