internal import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

/// Aliases: the ids that a back end gives to records created from keys. They come in verdicts and
/// pages, are saved in the same commit as these, and are removed with the record.
extension SyncSession {
  /// The aliases of this peer, read from the log at the first call.
  package func knownAliases() throws(TidemarkError) -> KnownAliases {
    if let aliases { return aliases }
    let read = try records.aliases()
    aliases = read
    return read
  }

  /// The aliases in the verdicts on a batch.
  ///
  /// A verdict with an invalid alias, or with another key's, becomes a rejection: accepted without
  /// its alias the key's next edit would create another record. But if the other key's value was
  /// pulled, both are the same record: this store pulled it before the verdict on its create, or
  /// created it before it was copied or restored. Then the other key is evicted, and this one gets
  /// its value.
  /// - Parameter sent: the request's changes, if in memory: compaction may have dropped replaced
  ///   ones from the log.
  func judgeAliases(
    _ batch: OutgoingBatch, _ mark: ReplicaMark, _ sent: [PushedChange]?
  ) throws(TidemarkError) -> DecidedAliases {
    let known = try knownAliases()
    var changes = AliasChanges(upon: known)
    var verdicts = mark.verdicts
    var doubles: [Int: LoggedChange] = [:]
    guard !mark.aliases.isEmpty || known.count > 0 else { return (verdicts, changes, doubles) }
    for (index, item) in batch.items.enumerated() where verdicts[index].isTaken {
      let key: [UInt8]
      let isDelete: Bool
      if let sent, sent.indices.contains(index), sent[index].sequence == item.sequence {
        (key, isDelete) = (sent[index].key, sent[index].kind == .delete)
      } else if let change = try log.change(at: item.sequence) {
        (key, isDelete) = (change.key, change.kind == .delete)
      } else {
        continue
      }
      if isDelete {
        changes.remove(ofKey: key)
        continue
      }
      guard let alias = mark.aliases[index] else { continue }
      if let other = changes.key(ofAlias: alias), other != key,
        let double = try log.newestChange(ofKey: other), double.kind == .put, !double.isOwn
      {
        doubles[index] = double
        changes.remove(ofKey: other)
      }
      if let fault = alias.fault ?? changes.clash(of: alias, with: key) {
        verdicts[index] = .rejected(SyncRejection(code: KeyAlias.refusal, message: fault).bounded)
      } else {
        changes.set(alias, ofKey: key)
      }
    }
    return (verdicts, changes, doubles)
  }

  /// The aliases in a page.
  /// - Throws: ``PeerError`` when the peer gives two keys the same alias.
  func aliasChanges(of page: PullAnswer) throws -> AliasChanges {
    let known = try knownAliases()
    var changes = AliasChanges(upon: known)
    guard known.count > 0 || page.entries.contains(where: { $0.alias != nil }) else {
      return changes
    }
    for entry in page.entries {
      let alias = entry.alias
      if let fault = alias?.fault { throw PeerError(.malformed, fault) }
      switch entry.kind {
      case .own:
        guard let alias, let change = try log.change(at: entry.operation.sequence) else {
          continue
        }
        // The page may return an old change: the alias from a later one stays.
        let known = changes.alias(ofKey: change.key)
        if change.kind == .delete {
          if known == alias { changes.remove(ofKey: change.key) }
        } else if known == nil, changes.clash(of: alias, with: change.key) == nil {
          // If the alias is another key's, the verdict on this change handles that.
          changes.set(alias, ofKey: change.key)
        }
      case .put:
        guard let alias else { continue }
        if let clash = changes.clash(of: alias, with: entry.key) {
          throw PeerError(.malformed, clash)
        }
        changes.set(alias, ofKey: entry.key)
      case .delete, .left:
        // The delete of an earlier record of the key must not remove the alias of the current one.
        guard alias == nil || alias == changes.alias(ofKey: entry.key) else { continue }
        changes.remove(ofKey: entry.key)
      }
    }
    return changes
  }

  /// The aliases in an answer to a values request.
  /// - Throws: ``PeerError`` when the peer gives two keys the same alias.
  func aliasChanges(of answer: ValuesAnswer, absent keys: [[UInt8]]) throws -> AliasChanges {
    var changes = try aliasChanges(ofAbsent: keys)
    for entry in answer.entries where entry.kind == .put {
      guard let alias = entry.alias else { continue }
      if let fault = alias.fault ?? changes.clash(of: alias, with: entry.key) {
        throw PeerError(.malformed, fault)
      }
      changes.set(alias, ofKey: entry.key)
    }
    return changes
  }

  /// Removes the aliases of keys that the peer has found absent: their records are gone.
  func aliasChanges(ofAbsent keys: [[UInt8]]) throws(TidemarkError) -> AliasChanges {
    var changes = AliasChanges(upon: try knownAliases())
    for key in keys { changes.remove(ofKey: key) }
    return changes
  }
}

extension PeerView {
  /// Whether an own change in a page was refused for its alias, and still has none.
  func staysRefused(_ sequence: UInt64, _ changes: AliasChanges) throws(TidemarkError) -> Bool {
    guard case .parked(let rejection) = outbox.waiting[sequence],
      rejection.code == KeyAlias.refusal,
      let change = try log.change(at: sequence), change.kind == .put
    else { return false }
    return changes.alias(ofKey: change.key) == nil
  }
}

/// The verdicts on a batch, the aliases that they give, and by change the newest version of another
/// key that has the same record, and is evicted.
typealias DecidedAliases = (
  verdicts: [PushVerdict], changes: AliasChanges, doubles: [Int: LoggedChange]
)

extension AliasChanges {
  /// Why a key cannot have an alias; nil when it can.
  fileprivate func clash(of alias: KeyAlias, with key: [UInt8]) -> String? {
    guard let owner = self.key(ofAlias: alias), owner != key else { return nil }
    return "two keys cannot have the alias \(alias.text.prefix(64)), which is that of "
      + "\(Key(owner).text.prefix(64)) and came for \(Key(key).text.prefix(64)), too"
  }
}
