extension SegmentVerifier {
  /// Looks at the attributes of an entry.
  mutating func check(
    _ attributes: EntryAttributes, of entry: EntryHead, in front: DecodedFront
  ) {
    if let attachment = attributes.attachment, attributes.entryClass == .owned {
      attachments.insert(attachment)
    }
    checkOrigin(of: entry, attributes, in: front)
  }

  /// Names an entry whose operation id lies beyond what any replica gives out. Nothing is lost, but
  /// earlier versions failed on it when they answered other replicas.
  private mutating func checkOrigin(
    of entry: EntryHead, _ attributes: EntryAttributes, in front: DecodedFront
  ) {
    guard let origin = attributes.origin, origin.sequence > Slot.maxSequence,
      findings.count < Limits.verifyFindings
    else { return }
    findings.append(
      VerifyFinding(
        file: fileName, offset: front.offset, length: front.header.totalLength,
        sequences: entry.sequence...entry.sequence,
        message: "an operation id with the sequence \(origin.sequence), which nobody gives out; "
          + "the entry counts as written by this store",
        remedy: "none is needed; logtool compact \(path) --drop-history takes it away once its "
          + "key was written anew",
        isDamageToAcknowledged: false, segmentID: row.id))
  }
}
