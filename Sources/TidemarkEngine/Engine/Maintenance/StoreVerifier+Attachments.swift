extension StoreVerifier {
  /// Reads all attachments (files beside the log, named after the hash of their content), and
  /// reports those that are named by an entry and missing.
  /// - Parameter named: what entries of the user's own data name; those of cached data may be gone.
  mutating func checkAttachments(
    _ named: Set<AttachmentID>, _ manifest: Manifest
  ) throws(TidemarkError) {
    let files = AttachmentFiles(
      fileSystem, store: path, keys: keys, random: environment.randomBytes)
    var missing = named
    for hash in try files.hashes() {
      let name = StoreLayout.attachmentDirectory + "/" + AttachmentID.text(hash)
      missing = missing.filter { $0.hash != hash }
      do throws(TidemarkError) {
        guard let header = try files.header(of: hash) else { continue }
        report.attachments += 1
        guard !header.isReleased else {
          report.attachmentsReleased += 1
          continue
        }
        report.attachmentBytes += header.fileBytes
        // While a change of keys goes on, attachments may have the former key.
        if manifest.filesToRewrite == 0, header.seal?.keyID != manifest.keyID {
          var finding = finding(name, offset: 0, "an attachment has another key than the store")
          finding.remedy = "compact, with the former key given too"
          report.findings.append(finding)
        }
        // Without the user's key nothing of an encrypted attachment but its header can be checked.
        if header.seal != nil, keys.isEmpty { continue }
        // A sweep of the running store may have removed the file since it was listed.
        guard let reader = try files.open(header.id) else { continue }
        try reader.verify()
      } catch {
        guard error.isDamage else { throw error }
        let fault = error.code == .damaged ? error : AttachmentFiles.unreadable(hash)
        report.findings.append(
          finding(fault.file ?? name, offset: fault.offset ?? 0, fault.message))
      }
    }
    for id in missing.sorted(by: { $0.hash.lexicographicallyPrecedes($1.hash) }) {
      // Files are listed before: one that was written since then is not missing.
      guard try !files.contains(id) else { continue }
      report.findings.append(
        finding(
          StoreLayout.attachmentDirectory + "/" + id.fileName, offset: 0,
          "an attachment that an entry names is missing"))
    }
  }

  private func finding(_ file: String, offset: Int, _ message: String) -> VerifyFinding {
    VerifyFinding(
      file: file, offset: offset, message: message,
      remedy: "attach the content again: the same content heals it", isDamageToAcknowledged: false)
  }
}
