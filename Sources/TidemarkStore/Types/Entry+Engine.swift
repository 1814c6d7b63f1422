package import TidemarkEngine

extension Entry {
  package init(key: [UInt8], value: [UInt8], info: EntryInfo, created: Timestamp?) {
    let attributes = info.attributes
    self.init(
      key: Key(key), value: value, valueLength: info.valueLength, sequence: info.sequence,
      kind: Kind(info.kind), labels: info.labels.map { EntryLabel($0) }, time: attributes.time,
      hash: attributes.hash, maxAgeSeconds: attributes.maxAge,
      storageClass: StorageClass(attributes.entryClass), schemaVersion: attributes.schemaVersion,
      attachment: attributes.attachment.map { AttachmentReference($0) },
      origin: attributes.origin.map { Origin($0) },
      created: created, updated: HybridTime(info.updated).timestamp,
      validated: HybridTime(info.commitTime).timestamp)
  }
}

extension Origin {
  package init(_ origin: EntryAttributes.Origin) {
    self.init(replica: origin.replica, sequence: origin.sequence)
  }
}

extension Entry.Kind {
  /// The engine's own records are never shown, so they need no kind.
  init(_ kind: EntryKind) {
    switch kind {
    case .put, .record: self = .put
    case .delete: self = .delete
    case .touch: self = .touch
    case .evict: self = .evict
    }
  }
}

extension StorageClass {
  init(_ entryClass: EntryAttributes.Class) { self = entryClass == .cache ? .cache : .owned }
}

extension Slot {
  /// Whether the key holds a cached value.
  package var isLiveCached: Bool { !isDeleted && size.isCached }
}
