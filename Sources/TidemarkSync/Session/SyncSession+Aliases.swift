internal import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

/// The peer's names for keys: learnt from verdicts and pages, in the same commit as these, and
/// forgotten when what it named is gone there.
extension SyncSession {
  /// The peer's names for the keys of this store.
  package func knownAliases() throws(TidemarkError) -> KnownAliases {
    if let aliases { return aliases }
    let read = try records.aliases()
    aliases = read
    return read
  }

  /// The aliases in the verdicts of a settled batch.
  ///
  /// A verdict with an alias that makes no sense, or is another key's, becomes a rejection: taken
  /// without its alias the next edit of the key would be created there once more. But where the
  /// other key has what came from the peer, it is the same record: this store read it before it
  /// heard that its create was taken, or a copy or a former life of it has created it. Then that
  /// key goes, and this one gets what it holds.
  /// - Parameter sent: what was sent, as far as it is known: the log may have dropped what a newer
  ///   change has replaced.
  func judgeAliases(
    _ batch: OutgoingBatch, _ mark: ReplicaMark, _ sent: [PushedChange]?
  ) throws(TidemarkError) -> JudgedAliases {
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
        verdicts[index] = .rejected(Rejection(code: Alias.refusal, message: fault).bounded)
      } else {
        changes.set(alias, ofKey: key)
      }
    }
    return (verdicts, changes, doubles)
  }

  /// The aliases in a page.
  /// - Throws: ``PeerError`` when the peer calls two keys the same.
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
        // It may be an old change that has come back: what was learnt of a later one stays.
        let known = changes.alias(ofKey: change.key)
        if change.kind == .delete {
          if known == alias { changes.remove(ofKey: change.key) }
        } else if known == nil, changes.clash(of: alias, with: change.key) == nil {
          // That the peer calls another key so the verdict has told, or tells.
          changes.set(alias, ofKey: change.key)
        }
      case .put:
        guard let alias else { continue }
        if let clash = changes.clash(of: alias, with: entry.key) {
          throw PeerError(.malformed, clash)
        }
        changes.set(alias, ofKey: entry.key)
      case .delete, .left:
        // A key that had the id before this one was created anew has nothing left to forget.
        guard alias == nil || alias == changes.alias(ofKey: entry.key) else { continue }
        changes.remove(ofKey: entry.key)
      }
    }
    return changes
  }

  /// The aliases in an answer about keys, of which some are known to hold nothing there.
  /// - Throws: ``PeerError`` when the peer calls two keys the same.
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

  /// The keys that the peer has said to hold nothing: whatever it called them is gone there.
  func aliasChanges(ofAbsent keys: [[UInt8]]) throws(TidemarkError) -> AliasChanges {
    var changes = AliasChanges(upon: try knownAliases())
    for key in keys { changes.remove(ofKey: key) }
    return changes
  }
}

extension PeerView {
  /// Whether an own change that has come back was refused for its alias, and there still is none.
  func staysRefused(_ sequence: UInt64, _ changes: AliasChanges) throws(TidemarkError) -> Bool {
    guard case .parked(let rejection) = outbox.waiting[sequence], rejection.code == Alias.refusal,
      let change = try log.change(at: sequence), change.kind == .put
    else { return false }
    return changes.alias(ofKey: change.key) == nil
  }
}

/// The verdicts on a batch and the aliases that they give; by change, the newest version of another
/// key that stands for the same record and goes.
typealias JudgedAliases = (verdicts: [Verdict], changes: AliasChanges, doubles: [Int: LoggedChange])

extension AliasChanges {
  /// Why a key cannot have an alias; nil when it can.
  fileprivate func clash(of alias: Alias, with key: [UInt8]) -> String? {
    guard let owner = self.key(ofAlias: alias), owner != key else { return nil }
    return "two keys cannot have the alias \(alias.text.prefix(64)), which is that of "
      + "\(Key(owner).text.prefix(64)) and came for \(Key(key).text.prefix(64)), too"
  }
}
