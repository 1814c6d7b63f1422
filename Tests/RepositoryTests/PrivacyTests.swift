import Foundation
import Testing

/// Apple wants a reason for each call by which an app could recognize a device. The lists are those
/// of its page "Describing use of required reason API".
@Suite("The privacy manifest")
struct PrivacyTests {
  private static let calls: [String: Set<String>] = [
    "FileTimestamp": [
      "creationDate", "modificationDate", "contentModificationDateKey", "creationDateKey",
      "fileModificationDate", "getattrlist", "getattrlistbulk", "fgetattrlist", "getattrlistat",
      "stat", "fstat", "fstatat", "lstat",
    ],
    "DiskSpace": [
      "volumeAvailableCapacityKey", "volumeAvailableCapacityForImportantUsageKey",
      "volumeAvailableCapacityForOpportunisticUsageKey", "volumeTotalCapacityKey",
      "systemFreeSize", "systemSize", "statfs", "statvfs", "fstatfs", "fstatvfs",
    ],
    "SystemBootTime": ["systemUptime", "mach_absolute_time"],
    "ActiveKeyboards": ["activeInputModes"],
    "UserDefaults": ["UserDefaults"],
  ]

  private struct Manifest: Decodable {
    struct Row: Decodable {
      var NSPrivacyAccessedAPIType: String
      var NSPrivacyAccessedAPITypeReasons: [String]
    }
    var NSPrivacyTracking: Bool
    var NSPrivacyCollectedDataTypes: [String]
    var NSPrivacyAccessedAPITypes: [Row]
  }

  private static func categories(of files: [SourceFile]) -> Set<String> {
    let names = Set(files.flatMap { $0.tokens.map(\.text) })
    return Set(calls.filter { !$0.value.isDisjoint(with: names) }.keys)
  }

  @Test("it has a reason for each kind of call that the modules make, and for no other")
  func reasons() throws {
    let data = try Data(
      contentsOf: Repository.root.appending(path: "Sources/CTidemark/PrivacyInfo.xcprivacy"))
    let manifest = try PropertyListDecoder().decode(Manifest.self, from: data)
    #expect(!manifest.NSPrivacyTracking && manifest.NSPrivacyCollectedDataTypes.isEmpty)
    let prefix = "NSPrivacyAccessedAPICategory"
    let reasons = Dictionary(
      uniqueKeysWithValues: manifest.NSPrivacyAccessedAPITypes.map {
        ($0.NSPrivacyAccessedAPIType, $0.NSPrivacyAccessedAPITypeReasons)
      })
    #expect(reasons == [prefix + "FileTimestamp": ["C617.1"], prefix + "DiskSpace": ["E174.1"]])
    let embedded = try Repository.sources.get().filter { !$0.path.contains("/LogtoolKit/") }
    #expect(Set(reasons.keys) == Set(Self.categories(of: embedded).map { prefix + $0 }))
  }

  @Test("a call that it has no reason for is seen")
  func seen() {
    let file = SourceFile("Sources/Tidemark/A.swift", "let at = mach_absolute_time()")
    #expect(Self.categories(of: [file]) == ["SystemBootTime"])
  }
}
