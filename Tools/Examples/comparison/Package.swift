// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
  .treatAllWarnings(as: .error),
]

// One screen twice, by Tidemark and by GRDB, as the article "Coming from GRDB, Core Data or Realm"
// shows both: `Tools/Examples/compare` builds them and checks that they show the same.
let package = Package(
  name: "comparison",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "tidemark", path: "../../.."),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ],
  targets: [
    .target(
      name: "TidemarkNotes", dependencies: [.product(name: "Tidemark", package: "tidemark")],
      swiftSettings: strict),
    .target(
      name: "GRDBNotes", dependencies: [.product(name: "GRDB", package: "GRDB.swift")],
      swiftSettings: strict),
    .testTarget(
      name: "ComparisonTests",
      dependencies: [
        "TidemarkNotes", "GRDBNotes", .product(name: "Tidemark", package: "tidemark"),
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6]
)
