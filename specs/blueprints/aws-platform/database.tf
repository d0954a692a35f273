# RDS for PostgreSQL: encrypted, backed up, and reached from the cluster only.

resource "aws_kms_key" "database" {
  description             = "Storage, insights and master password of the database of ${var.name}"
  enable_key_rotation     = true
  deletion_window_in_days = 30
}

resource "aws_kms_alias" "database" {
  name          = "alias/${var.name}-database"
  target_key_id = aws_kms_key.database.key_id
}

resource "aws_db_subnet_group" "main" {
  name       = var.name
  subnet_ids = [for subnet in aws_subnet.database : subnet.id]
}

resource "aws_security_group" "database" {
  name_prefix = "${var.name}-database-"
  description = "PostgreSQL, from the cluster only"
  vpc_id      = aws_vpc.main.id

  tags = { Name = "${var.name}-database" }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_ingress_rule" "database" {
  security_group_id            = aws_security_group.database.id
  description                  = "PostgreSQL from the nodes and pods of ${var.name}"
  referenced_security_group_id = aws_eks_cluster.main.vpc_config[0].cluster_security_group_id
  ip_protocol                  = "tcp"
  from_port                    = 5432
  to_port                      = 5432
}

resource "aws_db_parameter_group" "main" {
  name_prefix = "${var.name}-postgres${var.database_version}-"
  family      = "postgres${var.database_version}"

  parameter {
    name  = "rds.force_ssl"
    value = "1"
  }

  parameter {
    name  = "log_min_duration_statement"
    value = "1000"
  }

  lifecycle {
    create_before_destroy = true
  }
}

data "aws_iam_policy_document" "database_monitoring_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["monitoring.rds.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "database_monitoring" {
  name_prefix        = "${var.name}-rds-"
  assume_role_policy = data.aws_iam_policy_document.database_monitoring_trust.json
}

resource "aws_iam_role_policy_attachment" "database_monitoring" {
  role       = aws_iam_role.database_monitoring.name
  policy_arn = "${local.policy_prefix}/service-role/AmazonRDSEnhancedMonitoringRole"
}

# RDS would make these groups by itself, and keep their logs for ever.
resource "aws_cloudwatch_log_group" "database" {
  for_each = toset(["postgresql", "upgrade"])

  name              = "/aws/rds/instance/${var.name}/${each.value}"
  retention_in_days = var.log_retention_days
}

# A final snapshot outlives the database, so a second platform of this name needs another name for its own.
resource "random_id" "final_snapshot" {
  byte_length = 4
}

resource "aws_db_instance" "main" {
  identifier     = var.name
  engine         = "postgres"
  engine_version = var.database_version
  instance_class = var.database_instance_class
  multi_az       = var.database_multi_az

  db_name  = var.database_name
  username = var.database_username
  port     = 5432

  # RDS makes the password, keeps it in Secrets Manager and rotates it: it is in no state and no plan.
  manage_master_user_password         = true
  master_user_secret_kms_key_id       = aws_kms_key.database.arn
  iam_database_authentication_enabled = true

  allocated_storage     = var.database_storage_gb
  max_allocated_storage = var.database_max_storage_gb
  storage_type          = "gp3"
  storage_encrypted     = true
  kms_key_id            = aws_kms_key.database.arn

  db_subnet_group_name   = aws_db_subnet_group.main.name
  vpc_security_group_ids = [aws_security_group.database.id]
  publicly_accessible    = false
  parameter_group_name   = aws_db_parameter_group.main.name

  backup_retention_period    = var.database_backup_days
  backup_window              = "02:00-03:00"
  maintenance_window         = "sun:03:30-sun:04:30"
  auto_minor_version_upgrade = true
  copy_tags_to_snapshot      = true
  delete_automated_backups   = false

  # A change of the major version is deliberate: it is made by changing database_version.
  allow_major_version_upgrade = true
  apply_immediately           = false

  monitoring_interval             = 60
  monitoring_role_arn             = aws_iam_role.database_monitoring.arn
  performance_insights_enabled    = true
  performance_insights_kms_key_id = aws_kms_key.database.arn
  enabled_cloudwatch_logs_exports = keys(aws_cloudwatch_log_group.database)

  deletion_protection       = var.deletion_protection
  skip_final_snapshot       = false
  final_snapshot_identifier = "${var.name}-final-${random_id.final_snapshot.hex}"

  lifecycle {
    precondition {
      condition     = var.database_max_storage_gb >= var.database_storage_gb
      error_message = "database_max_storage_gb is smaller than database_storage_gb. Raise the maximum or lower the storage."
    }
  }

  depends_on = [aws_iam_role_policy_attachment.database_monitoring]
}
